#ifndef CONVERSION_REFERENCE_H
#define CONVERSION_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

/// The work of AudioConverter as one would write it in C: interleaved float to mono 16 bit, mean, libsoxr, round, saturate.
typedef struct conversion_reference conversion_reference;

/// `recipe` is a quality of libsoxr. Returns null when libsoxr refuses.
conversion_reference *conversion_reference_create(
    double input_rate, double output_rate, size_t channels, size_t longest_buffer, unsigned long recipe);

/// Converts `frames` interleaved frames, at most the longest buffer; returns the frames written to `output`.
size_t conversion_reference_convert(
    conversion_reference *self, const float *input, size_t frames, int16_t *output, size_t room);

/// Writes what is still held; returns the frames written.
size_t conversion_reference_drain(conversion_reference *self, int16_t *output, size_t room);

void conversion_reference_destroy(conversion_reference *self);

#endif
