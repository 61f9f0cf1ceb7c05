// Carries the operator's page inside the program, which reads no file of its own while it runs.
#pragma once

/// The bytes of page.html, as a string that lives as long as the program.
const char *_Nonnull hermes_page_document(void);

/// The bytes of page.css, as a string that lives as long as the program.
const char *_Nonnull hermes_page_style(void);

/// The bytes of page.js, as a string that lives as long as the program.
const char *_Nonnull hermes_page_script(void);

/// The bytes of tail.js, as a string that lives as long as the program.
const char *_Nonnull hermes_page_tail_script(void);

/// The bytes of mqtt.js, as a string that lives as long as the program.
const char *_Nonnull hermes_page_mqtt_script(void);

/// The bytes of text.js, as a string that lives as long as the program.
const char *_Nonnull hermes_page_text_script(void);
