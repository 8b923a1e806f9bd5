/* Of sys/mman.h, which Swift's Glibc module has without GNU's own. */
int memfd_create(const char *name, unsigned int flags);
