#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

/// Whether allocations are counted: not in a build with a sanitizer, which has an allocator of its own.
bool allocation_count_supported(void);

/// Calls of malloc and its kin on this thread so far.
uint64_t allocation_count_thread(void);

/// Calls of malloc and its kin in the whole process so far, for work on other threads.
uint64_t allocation_count_process(void);

#endif
