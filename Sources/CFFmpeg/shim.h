#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>

// Macros that Swift does not see, and what differs between FFmpeg 5.1, 6 and 7.

static inline int steno_averror(int number) { return AVERROR(number); }
static inline int steno_averror_eof(void) { return AVERROR_EOF; }
static inline int64_t steno_nopts(void) { return AV_NOPTS_VALUE; }

static inline AVIOContext *steno_io(
    int size, int writes, void *opaque, int (*read)(void *, uint8_t *, int),
    int (*write)(void *, const uint8_t *, int), int64_t (*seek)(void *, int64_t, int)) {
    unsigned char *buffer = (unsigned char *)av_malloc((size_t)size);
    if (!buffer) return NULL;
    AVIOContext *io = avio_alloc_context(
        buffer, size, writes, opaque, read,
#if LIBAVFORMAT_VERSION_MAJOR >= 61
        write,
#else
        (int (*)(void *, uint8_t *, int))write,
#endif
        seek);
    if (!io) av_free(buffer);
    return io;
}

static inline void steno_io_free(AVIOContext *io) {
    if (io) av_freep(&io->buffer);
    avio_context_free(&io);
}

// Bytes that were read and not yet consumed.
static inline long steno_io_buffered(const AVIOContext *io) { return (long)(io->buf_end - io->buf_ptr); }

static inline int steno_refuse_to_open(
    AVFormatContext *context, AVIOContext **io, const char *url, int flags, AVDictionary **options) {
    (void)context, (void)io, (void)url, (void)flags, (void)options;
    return AVERROR(EPERM);
}

// A file that names others, as a playlist does, gets none of them.
static inline void steno_refuse_other_files(AVFormatContext *context) { context->io_open = steno_refuse_to_open; }

// Frames `offset` to `offset + count` of `frame`, or with NULL what is held back, as packed samples: how many came out.
static inline int steno_convert(
    SwrContext *converter, uint8_t *out, int capacity, const AVFrame *frame, int offset, int count) {
    const uint8_t *planes[64] = {0};
    if (!frame) return swr_convert(converter, &out, capacity, NULL, 0);
    enum AVSampleFormat format = (enum AVSampleFormat)frame->format;
    int bytes = av_get_bytes_per_sample(format), channels = frame->ch_layout.nb_channels;
    if (channels > 64) return AVERROR(EINVAL);
    if (av_sample_fmt_is_planar(format)) {
        for (int i = 0; i < channels; i++) planes[i] = frame->extended_data[i] + (size_t)offset * bytes;
    } else {
        planes[0] = frame->extended_data[0] + (size_t)offset * bytes * channels;
    }
    return swr_convert(converter, &out, capacity, planes, count);
}

// Puts frames from `start` on, interleaved (`plane` 0) or `plane` bytes from channel to channel, into planes of `frame`.
static inline int steno_fill(
    SwrContext *converter, AVFrame *frame, int offset, const uint8_t *samples, size_t plane, size_t start, int count) {
    const uint8_t *in[64] = {0};
    uint8_t *out[64] = {0};
    int channels = frame->ch_layout.nb_channels;
    if (channels > 64) return AVERROR(EINVAL);
    for (int i = 0; i < channels; i++) {
        out[i] = frame->extended_data[i] + (size_t)offset * av_get_bytes_per_sample((enum AVSampleFormat)frame->format);
        in[i] = plane ? samples + i * plane + start : i ? NULL : samples + start;
    }
    return swr_convert(converter, out, count, in, count);
}
