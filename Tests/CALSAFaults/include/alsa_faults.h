/// Makes the next `snd_pcm_readi` of this process fail with `status`.
void fail_next_alsa_read(int status);
