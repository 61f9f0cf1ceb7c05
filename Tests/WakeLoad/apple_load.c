/* Apple's push service for load: answers every request at once, on a thread for each connection.
 *
 *     apple_load PORT CERTIFICATE KEY
 *
 * A device token that begins with ba gets 400 BadDeviceToken, one with d0 410 Unregistered, any other
 * 200. Each device is named by the last four bytes of its token, which must be a number below 2^20.
 * At SIGTERM it prints one JSON object: requests, and of the devices that got 200 how many, and how
 * many got it more than once. */

#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEVICES = 1 << 20 };

static SSL_CTX *context;
static atomic_uchar accepted[DEVICES];
static atomic_ulong requests, refused;

struct connection {
    int socket;
    SSL *ssl;
    nghttp2_session *session;
};

/* A stream's answer: 0 for 200, 1 for BadDeviceToken, 2 for Unregistered; plus 4 times the device. */
static int on_header(
    nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_count,
    const uint8_t *value, size_t value_count, uint8_t flags, void *user)
{
    static const char path[] = "/3/device/";
    (void)flags;
    (void)user;
    if (name_count != 5 || memcmp(name, ":path", 5) != 0 || value_count < sizeof path + 8)
        return 0;
    const char *token = (const char *)value + sizeof path - 1;
    char digits[9] = {0};
    memcpy(digits, value + value_count - 8, 8);
    unsigned long device = strtoul(digits, NULL, 16) % DEVICES;
    unsigned long answer = memcmp(token, "ba", 2) == 0 ? 1 : memcmp(token, "d0", 2) == 0 ? 2 : 0;
    nghttp2_session_set_stream_user_data(
        session, frame->hd.stream_id, (void *)(answer | device << 2 | 1UL << 40));
    return 0;
}

static ssize_t read_body(
    nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t count, uint32_t *flags,
    nghttp2_data_source *source, void *user)
{
    const char *text = source->ptr;
    size_t length = strlen(text);
    (void)session;
    (void)stream;
    (void)user;
    if (length > count)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    memcpy(buffer, text, length);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)length;
}

static void answer(nghttp2_session *session, int32_t stream)
{
    unsigned long data = (unsigned long)nghttp2_session_get_stream_user_data(session, stream);
    unsigned long device = data >> 2 & (DEVICES - 1);
    nghttp2_data_provider body = {.read_callback = read_body};
    const char *status = "200";
    atomic_fetch_add(&requests, 1);
    switch (data & 3) {
    case 0:
        if (atomic_load(&accepted[device]) < 255)
            atomic_fetch_add(&accepted[device], 1);
        break;
    case 1:
        status = "400";
        body.source.ptr = "{\"reason\":\"BadDeviceToken\"}";
        break;
    default:
        status = "410";
        body.source.ptr = "{\"reason\":\"Unregistered\",\"timestamp\":99999999999999}";
    }
    if (body.source.ptr != NULL)
        atomic_fetch_add(&refused, 1);
    nghttp2_nv field = {
        (uint8_t *)":status", (uint8_t *)status, 7, 3, NGHTTP2_NV_FLAG_NONE};
    nghttp2_submit_response(session, stream, &field, 1, body.source.ptr == NULL ? NULL : &body);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)user;
    if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)
        && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        answer(session, frame->hd.stream_id);
    return 0;
}

static int flush(struct connection *connection)
{
    static _Thread_local uint8_t buffer[16384];
    size_t used = 0;
    for (;;) {
        const uint8_t *chunk;
        ssize_t count = nghttp2_session_mem_send(connection->session, &chunk);
        if (count < 0)
            return -1;
        if (used > 0 && (count == 0 || used + (size_t)count > sizeof buffer)) {
            if (SSL_write(connection->ssl, buffer, (int)used) <= 0)
                return -1;
            used = 0;
        }
        if (count == 0)
            return 0;
        if ((size_t)count > sizeof buffer) {
            if (SSL_write(connection->ssl, chunk, (int)count) <= 0)
                return -1;
            continue;
        }
        memcpy(buffer + used, chunk, (size_t)count);
        used += (size_t)count;
    }
}

static void *serve(void *argument)
{
    struct connection connection = {.socket = (int)(long)argument};
    nghttp2_session_callbacks *callbacks;
    nghttp2_settings_entry settings = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000};
    uint8_t buffer[16384];
    int one = 1;
    setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    connection.ssl = SSL_new(context);
    SSL_set_fd(connection.ssl, connection.socket);
    if (SSL_accept(connection.ssl) == 1) {
        nghttp2_session_callbacks_new(&callbacks);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session_server_new(&connection.session, callbacks, &connection);
        nghttp2_session_callbacks_del(callbacks);
        nghttp2_submit_settings(connection.session, NGHTTP2_FLAG_NONE, &settings, 1);
        for (;;) {
            if (flush(&connection) != 0)
                break;
            int count = SSL_read(connection.ssl, buffer, sizeof buffer);
            if (count <= 0
                || nghttp2_session_mem_recv(connection.session, buffer, (size_t)count) < 0)
                break;
        }
        nghttp2_session_del(connection.session);
    }
    SSL_free(connection.ssl);
    close(connection.socket);
    return NULL;
}

static int choose(
    SSL *ssl, const unsigned char **out, unsigned char *count, const unsigned char *in,
    unsigned int in_count, void *argument)
{
    (void)ssl;
    (void)argument;
    return SSL_select_next_proto(
               (unsigned char **)out, count, (const unsigned char *)"\x02h2", 3, in, in_count)
                == OPENSSL_NPN_NEGOTIATED
        ? SSL_TLSEXT_ERR_OK
        : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void *listen_for_ever(void *argument)
{
    int listener = (int)(long)argument;
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        pthread_t thread;
        if (connection < 0)
            continue;
        pthread_create(&thread, NULL, serve, (void *)(long)connection);
        pthread_detach(thread);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    sigset_t ends;
    int end, one = 1;
    pthread_t thread;
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (count != 4) {
        fprintf(stderr, "usage: apple_load PORT CERTIFICATE KEY\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_alpn_select_cb(context, choose, NULL);
    if (SSL_CTX_use_certificate_chain_file(context, arguments[2]) != 1
        || SSL_CTX_use_PrivateKey_file(context, arguments[3], SSL_FILETYPE_PEM) != 1) {
        ERR_print_errors_fp(stderr);
        return 1;
    }
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    address.sin_port = htons((uint16_t)atoi(arguments[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0
        || listen(listener, 128) != 0) {
        perror("apple_load");
        return 1;
    }
    pthread_create(&thread, NULL, listen_for_ever, (void *)(long)listener);
    sigwait(&ends, &end);
    unsigned long devices = 0, twice = 0;
    for (int device = 0; device < DEVICES; device++) {
        unsigned char times = atomic_load(&accepted[device]);
        devices += times > 0;
        twice += times > 1;
    }
    printf(
        "{\"requests\": %lu, \"refused\": %lu, \"devices\": %lu, \"more_than_once\": %lu}\n",
        atomic_load(&requests), atomic_load(&refused), devices, twice);
    return 0;
}
