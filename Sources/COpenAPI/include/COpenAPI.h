// Carries openapi.json inside the program, which reads no file of its own while it runs.
#pragma once

/// The bytes of openapi.json, as a string that lives as long as the program.
const char *_Nonnull hermes_openapi_document(void);
