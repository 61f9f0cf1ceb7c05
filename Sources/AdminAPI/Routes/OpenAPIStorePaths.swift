extension OpenAPIDocument {
    /// The last paths of the document: queues, and the store.
    // swift-format-ignore
    static let storePaths = #"""
            "/v1/clients/{id}/queue": {
              "get": {
                "operationId": "getQueue",
                "security": [{"token": ["read"]}],
                "summary": "What is in flight to a client, and what waits for it",
                "parameters": [
                  {
                    "name": "id",
                    "in": "path",
                    "required": true,
                    "description": "The client identifier, percent-encoded; a slash in it is %2F.",
                    "schema": {"type": "string", "minLength": 1}
                  },
                  {
                    "name": "limit",
                    "in": "query",
                    "description": "Messages of a page; topics and payloads of more than 1 MiB end it earlier.",
                    "schema": {
                      "type": "integer",
                      "minimum": 1,
                      "maximum": 1000,
                      "default": 100
                    }
                  },
                  {
                    "name": "cursor",
                    "in": "query",
                    "description": "The member next of the page before.",
                    "schema": {"type": "integer", "format": "int64", "minimum": 0}
                  }
                ],
                "responses": {
                  "200": {
                    "description": "A page, oldest first.",
                    "content": {
                      "application/json": {"schema": {"$ref": "#/components/schemas/QueuePage"}}
                    }
                  },
                  "400": {"$ref": "#/components/responses/Invalid"},
                  "401": {"$ref": "#/components/responses/Unauthorized"},
                  "403": {"$ref": "#/components/responses/Forbidden"},
                  "429": {"$ref": "#/components/responses/TooManyFailures"},
                  "404": {"$ref": "#/components/responses/NotFound"},
                  "503": {"$ref": "#/components/responses/Unavailable"},
                  "default": {"$ref": "#/components/responses/OtherProblem"}
                }
              },
              "delete": {
                "operationId": "dropQueue",
                "security": [{"token": ["admin"]}],
                "summary": "Drop what waits for a client",
                "description": "What is in flight stays. Answered once it is stored.",
                "parameters": [
                  {
                    "name": "id",
                    "in": "path",
                    "required": true,
                    "description": "The client identifier, percent-encoded; a slash in it is %2F.",
                    "schema": {"type": "string", "minLength": 1}
                  }
                ],
                "responses": {
                  "200": {
                    "description": "How many messages are gone.",
                    "content": {
                      "application/json": {
                        "schema": {"$ref": "#/components/schemas/QueueDropResult"}
                      }
                    }
                  },
                  "400": {"$ref": "#/components/responses/Invalid"},
                  "401": {"$ref": "#/components/responses/Unauthorized"},
                  "403": {"$ref": "#/components/responses/Forbidden"},
                  "429": {"$ref": "#/components/responses/TooManyFailures"},
                  "404": {"$ref": "#/components/responses/NotFound"},
                  "503": {"$ref": "#/components/responses/Unavailable"},
                  "default": {"$ref": "#/components/responses/OtherProblem"}
                }
              }
            },
            "/v1/store/accept-loss": {
              "post": {
                "operationId": "acceptLoss",
                "security": [{"token": ["admin"]}],
                "summary": "Accept that damaged data is lost",
                "description": "Damaged files stay under another name.",
                "responses": {
                  "200": {
                    "description": "What nobody asks about any more.",
                    "content": {
                      "application/json": {
                        "schema": {"$ref": "#/components/schemas/AcceptLossResult"}
                      }
                    }
                  },
                  "400": {"$ref": "#/components/responses/Invalid"},
                  "401": {"$ref": "#/components/responses/Unauthorized"},
                  "403": {"$ref": "#/components/responses/Forbidden"},
                  "429": {"$ref": "#/components/responses/TooManyFailures"},
                  "503": {"$ref": "#/components/responses/Unavailable"},
                  "default": {"$ref": "#/components/responses/OtherProblem"}
                }
              }
            },
            "/v1/backup": {
              "post": {
                "operationId": "backUp",
                "security": [{"token": ["admin"]}],
                "summary": "Copy everything that is stored into a folder",
                "description": "Answered when the copy is whole; GET /v1/status says how far it is.",
                "parameters": [
                  {
                    "name": "directory",
                    "in": "query",
                    "required": true,
                    "description": "An absolute path on the broker's machine: a folder that is empty and closed to others, or is made.",
                    "schema": {"type": "string", "pattern": "^/[^\\u0000]*$"}
                  }
                ],
                "responses": {
                  "200": {
                    "description": "A broker can be started on the folder.",
                    "content": {
                      "application/json": {
                        "schema": {"$ref": "#/components/schemas/BackupResult"}
                      }
                    }
                  },
                  "400": {"$ref": "#/components/responses/Invalid"},
                  "401": {"$ref": "#/components/responses/Unauthorized"},
                  "403": {"$ref": "#/components/responses/Forbidden"},
                  "429": {"$ref": "#/components/responses/TooManyFailures"},
                  "409": {"$ref": "#/components/responses/BackupFolder"},
                  "503": {"$ref": "#/components/responses/Unavailable"},
                  "507": {"$ref": "#/components/responses/DiskFull"},
                  "default": {"$ref": "#/components/responses/OtherProblem"}
                }
              }
            }
          },
        """#
}
