#include <curl/curl.h>

// Swift does not call functions with variable arguments.

static inline CURLcode steno_curl_set_long(CURL *curl, CURLoption option, long value) {
    return curl_easy_setopt(curl, option, value);
}

static inline CURLcode steno_curl_set_text(CURL *curl, CURLoption option, const char *value) {
    return curl_easy_setopt(curl, option, value);
}

static inline CURLcode steno_curl_set_list(CURL *curl, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(curl, option, value);
}

static inline void steno_curl_set_callbacks(
    CURL *curl, void *object, size_t (*header)(char *, size_t, size_t, void *),
    size_t (*write)(char *, size_t, size_t, void *),
    int (*progress)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t)) {
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, object);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, object);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, object);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

static inline CURLcode steno_curl_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }

static inline long steno_curl_status(CURL *curl) {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}
