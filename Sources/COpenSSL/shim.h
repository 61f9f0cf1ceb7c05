#include <openssl/conf.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* Parts of OpenSSL that Swift does not import: macros over SSL_ctrl, options that are shifted bits,
   and typed stacks. */

static inline int hermes_ssl_ctx_set_minimum_version(SSL_CTX *context, int version)
{
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline int hermes_ssl_ctx_set_maximum_version(SSL_CTX *context, int version)
{
    return (int)SSL_CTX_set_max_proto_version(context, version);
}

/* No renegotiation and no compression; ours is the order of ciphers, but for a client that puts
   ChaCha20 first because it has no instructions for AES. The kernel seals no records for us, whatever
   openssl.cnf says: we do. */
static inline void hermes_ssl_ctx_set_server_options(SSL_CTX *context)
{
    SSL_CTX_set_options(
        context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE
                     | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_clear_options(context, SSL_OP_ENABLE_KTLS | SSL_OP_ALLOW_NO_DHE_KEX);
}

static inline int hermes_ssl_ctx_set_groups(SSL_CTX *context, const char *names)
{
    return (int)SSL_CTX_set1_groups_list(context, names);
}

static inline void hermes_ssl_ctx_set_session_cache_off(SSL_CTX *context)
{
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

/* Sessions are handed to the new-session callback and kept nowhere else. */
static inline void hermes_ssl_ctx_set_client_sessions(SSL_CTX *context)
{
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}

static inline void hermes_ssl_ctx_set_maximum_certificate_list(SSL_CTX *context, long bytes)
{
    SSL_CTX_set_max_cert_list(context, bytes);
}

static inline void hermes_ssl_ctx_release_buffers(SSL_CTX *context)
{
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

static inline void hermes_ssl_ctx_set_client_modes(SSL_CTX *context)
{
    SSL_CTX_set_mode(
        context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE
                     | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

static inline int hermes_ssl_ctx_add_chain_certificate(SSL_CTX *context, X509 *certificate)
{
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static inline void hermes_ssl_ctx_set_server_name_callback(
    SSL_CTX *context, int (*callback)(SSL *, int *, void *), void *argument)
{
    SSL_CTX_set_tlsext_servername_callback(context, callback);
    SSL_CTX_set_tlsext_servername_arg(context, argument);
}

static inline int hermes_ssl_set_server_name(SSL *ssl, const char *name)
{
    return (int)SSL_set_tlsext_host_name(ssl, name);
}

static inline void hermes_bio_clear_retry(BIO *bio)
{
    BIO_clear_retry_flags(bio);
}

/* Marks a failed read, or else write, as worth another try. */
static inline void hermes_bio_set_retry(BIO *bio, int is_read)
{
    if (is_read)
        BIO_set_retry_read(bio);
    else
        BIO_set_retry_write(bio);
}

/* Wipes what calls that have returned left on the stack: copies of keys that the compiler made. */
__attribute__((noinline)) static void hermes_wipe_stack(void)
{
    unsigned char bytes[16384];
    OPENSSL_cleanse(bytes, sizeof bytes);
}

static inline int hermes_chain_count(const STACK_OF(X509) *chain)
{
    return chain == NULL ? 0 : sk_X509_num(chain);
}

static inline X509 *hermes_chain_certificate(const STACK_OF(X509) *chain, int index)
{
    return sk_X509_value(chain, index);
}

static inline int hermes_crl_entry_count(X509_CRL *list)
{
    STACK_OF(X509_REVOKED) *entries = X509_CRL_get_REVOKED(list);
    return entries == NULL ? 0 : sk_X509_REVOKED_num(entries);
}

static inline const ASN1_INTEGER *hermes_crl_entry_serial(X509_CRL *list, int index)
{
    return X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(X509_CRL_get_REVOKED(list), index));
}

/* Keys the MAC of a session ticket: HMAC with SHA-256. */
static inline int hermes_ticket_mac_init(EVP_MAC_CTX *mac, const void *key, size_t count)
{
    OSSL_PARAM parameters[3];
    char digest[] = "SHA256";
    parameters[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, count);
    parameters[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0);
    parameters[2] = OSSL_PARAM_construct_end();
    return EVP_MAC_CTX_set_params(mac, parameters);
}

/* HMAC with a digest and without a key; NULL without memory. The caller frees it. */
static inline EVP_MAC_CTX *hermes_hmac_template(const char *digest)
{
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *context = EVP_MAC_CTX_new(hmac);
    OSSL_PARAM parameters[2];
    EVP_MAC_free(hmac);
    parameters[0] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0);
    parameters[1] = OSSL_PARAM_construct_end();
    if (context != NULL && EVP_MAC_CTX_set_params(context, parameters) != 1) {
        EVP_MAC_CTX_free(context);
        return NULL;
    }
    return context;
}

static inline int hermes_cipher_set_tag(EVP_CIPHER_CTX *cipher, const void *tag)
{
    return EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, 16, (void *)tag);
}

static inline int hermes_cipher_get_tag(EVP_CIPHER_CTX *cipher, void *tag)
{
    return EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, 16, tag);
}
