#define _GNU_SOURCE
#include "alsa_faults.h"
#include <dlfcn.h>
#include <stdatomic.h>

static atomic_int next_status;

void fail_next_alsa_read(int status) { atomic_store(&next_status, status); }

// Stands before the function of libasound, which the executable would call otherwise.
long snd_pcm_readi(void *pcm, void *buffer, unsigned long size) {
    int status = atomic_exchange(&next_status, 0);
    if (status) return status;
    long (*real)(void *, void *, unsigned long) = dlsym(RTLD_NEXT, "snd_pcm_readi");
    return real(pcm, buffer, size);
}
