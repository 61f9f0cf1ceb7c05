#include "COpenAPI.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

const char *hermes_openapi_document(void) {
    static const char document[] = {
#embed "openapi.json" suffix(, 0)
    };
    return document;
}
