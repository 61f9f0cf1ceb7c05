#include "COperatorPage.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

const char *hermes_page_document(void) {
    static const char document[] = {
#embed "page.html" suffix(, 0)
    };
    return document;
}

const char *hermes_page_style(void) {
    static const char style[] = {
#embed "page.css" suffix(, 0)
    };
    return style;
}

const char *hermes_page_script(void) {
    static const char script[] = {
#embed "page.js" suffix(, 0)
    };
    return script;
}

const char *hermes_page_tail_script(void) {
    static const char script[] = {
#embed "tail.js" suffix(, 0)
    };
    return script;
}

const char *hermes_page_mqtt_script(void) {
    static const char script[] = {
#embed "mqtt.js" suffix(, 0)
    };
    return script;
}

const char *hermes_page_text_script(void) {
    static const char script[] = {
#embed "text.js" suffix(, 0)
    };
    return script;
}
