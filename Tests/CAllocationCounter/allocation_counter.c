// Defines malloc and its kin over glibc's own, counting. The definitions in the executable win over libc's for every
// library of the process.

#include "allocation_counter.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HAS_ALLOCATOR_OF_ITS_OWN 1
#endif
#endif

#if defined(__GLIBC__) && !defined(HAS_ALLOCATOR_OF_ITS_OWN)

// Initial-exec: the first access must not allocate.
static _Thread_local uint64_t thread_count __attribute__((tls_model("initial-exec")));
static _Atomic uint64_t process_count;

static void count(void) {
    thread_count++;
    atomic_fetch_add_explicit(&process_count, 1, memory_order_relaxed);
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
    count();
    return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    count();
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
    void *result = __libc_memalign(alignment, size);
    if (!result) return ENOMEM;
    *memory = result;
    return 0;
}

void free(void *memory) { __libc_free(memory); }

bool allocation_count_supported(void) { return true; }
uint64_t allocation_count_thread(void) { return thread_count; }
uint64_t allocation_count_process(void) { return atomic_load_explicit(&process_count, memory_order_relaxed); }

#else

bool allocation_count_supported(void) { return false; }
uint64_t allocation_count_thread(void) { return 0; }
uint64_t allocation_count_process(void) { return 0; }

#endif
