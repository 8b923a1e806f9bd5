#include "conversion_reference.h"

#include <math.h>
#include <soxr.h>
#include <stdlib.h>

struct conversion_reference {
    soxr_t soxr;
    size_t channels;
    float *mono;
    float *resampled;
    size_t room;
};

conversion_reference *conversion_reference_create(
    double input_rate, double output_rate, size_t channels, size_t longest_buffer, unsigned long recipe) {
    conversion_reference *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    soxr_error_t error = NULL;
    soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    soxr_quality_spec_t quality = soxr_quality_spec(recipe, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    self->channels = channels;
    self->room = 65536;
    self->mono = malloc(longest_buffer * sizeof *self->mono);
    self->resampled = malloc(self->room * sizeof *self->resampled);
    if (input_rate != output_rate) {
        self->soxr = soxr_create(input_rate, output_rate, 1, &error, &io, &quality, &runtime);
    }
    if (error || !self->mono || !self->resampled) {
        conversion_reference_destroy(self);
        return NULL;
    }
    return self;
}

static size_t write_samples(const float *samples, size_t count, int16_t *output, size_t room) {
    if (count > room) count = room;
    for (size_t i = 0; i < count; i++) {
        float scaled = samples[i] * 32768.0f;
        if (scaled > 32767.0f) scaled = 32767.0f;
        if (scaled < -32768.0f) scaled = -32768.0f;
        output[i] = (int16_t)lrintf(scaled);
    }
    return count;
}

size_t conversion_reference_convert(
    conversion_reference *self, const float *input, size_t frames, int16_t *output, size_t room) {
    const float *mono = input;
    if (self->channels == 2) {
        for (size_t i = 0; i < frames; i++) self->mono[i] = (input[2 * i] + input[2 * i + 1]) * 0.5f;
        mono = self->mono;
    } else if (self->channels > 2) {
        float gain = 1.0f / (float)self->channels;
        for (size_t i = 0; i < frames; i++) {
            float sum = 0;
            for (size_t c = 0; c < self->channels; c++) sum += input[i * self->channels + c];
            self->mono[i] = sum * gain;
        }
        mono = self->mono;
    }
    if (!self->soxr) return write_samples(mono, frames, output, room);
    size_t consumed = 0, produced = 0;
    if (soxr_process(self->soxr, mono, frames, &consumed, self->resampled, self->room, &produced)) return 0;
    return write_samples(self->resampled, produced, output, room);
}

size_t conversion_reference_drain(conversion_reference *self, int16_t *output, size_t room) {
    size_t produced = 0;
    if (!self->soxr) return 0;
    if (soxr_process(self->soxr, NULL, 0, NULL, self->resampled, self->room, &produced)) return 0;
    return write_samples(self->resampled, produced, output, room);
}

void conversion_reference_destroy(conversion_reference *self) {
    if (!self) return;
    soxr_delete(self->soxr);
    free(self->mono);
    free(self->resampled);
    free(self);
}
