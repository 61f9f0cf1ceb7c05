/// The OpenAPI 3.1 document of `GET /v1/openapi.json`.
///
/// It is a text rather than something derived, so that a route cannot change what it promises
/// without a change here; a test compares its paths, methods and parameters with ``RouteTable``.
enum OpenAPIDocument {
    /// The document, with the version of this software (letters, digits and `.-+` only).
    static func text(version: String) -> String {
        head.replacing("VERSION", with: version) + "\n" + storePaths + "\n" + components
    }

    // swift-format-ignore
    private static let head = #"""
        {
          "openapi": "3.1.0",
          "info": {
            "title": "Hermes",
            "summary": "Admin and back-office API of the Hermes MQTT broker",
            "version": "VERSION",
            "description": "Every error is a problem document (RFC 9457). Unknown query parameters and unknown JSON fields are errors. Each operation names the scope that its token needs: publish, read or admin, of which the last includes the others. Over the Unix socket no token is needed."
          },
          "security": [{"token": []}],
          "paths": {
            "/healthz": {
              "get": {
                "operationId": "getHealth",
                "summary": "Whether the admin plane answers",
                "security": [],
                "responses": {
                  "200": {
                    "description": "It answers.",
                    "content": {
                      "application/json": {"schema": {"$ref": "#/components/schemas/Health"}}
                    }
                  },
                  "400": {"$ref": "#/components/responses/Invalid"},
                  "503": {"$ref": "#/components/responses/Unavailable"},
                  "default": {"$ref": "#/components/responses/OtherProblem"}
                }
              }
            },
            "/readyz": {
              "get": {
                "operationId": "getReadiness",
                "summary": "Whether everything is acknowledged durably",
                "description": "Red from damage that was found until POST /v1/store/accept-loss, across restarts. With durability none it is ready, and says so.",
                "security": [],
                "responses": {
                  "200": {
                    "description": "It is, as far as durability promises.",
                    "content": {
                      "application/json": {"schema": {"$ref": "#/components/schemas/Readiness"}}
                    }
                  },
                  "400": {"$ref": "#/components/responses/Invalid"},
                  "503": {"$ref": "#/components/responses/NotReady"},
                  "default": {"$ref": "#/components/responses/OtherProblem"}
                }
              }
            },
            "/v1/openapi.json": {
              "get": {
                "operationId": "getOpenAPI",
                "summary": "This document",
                "security": [],
                "responses": {
                  "200": {
                    "description": "The OpenAPI document.",
                    "content": {"application/json": {"schema": {"type": "object"}}}
                  },
                  "400": {"$ref": "#/components/responses/Invalid"},
                  "503": {"$ref": "#/components/responses/Unavailable"},
                  "default": {"$ref": "#/components/responses/OtherProblem"}
                }
              }
            },
            "/v1/status": {
              "get": {
                "operationId": "getStatus",
                "security": [{"token": ["read"]}],
                "summary": "The broker at a glance",
                "responses": {
                  "200": {
                    "description": "Gauges and counters.",
                    "content": {
                      "application/json": {"schema": {"$ref": "#/components/schemas/Status"}}
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
            "/metrics": {
              "get": {
                "operationId": "getMetrics",
                "security": [{"token": ["read"]}],
                "summary": "Counters and gauges for Prometheus",
                "responses": {
                  "200": {
                    "description": "Prometheus text format 0.0.4.",
                    "content": {"text/plain": {"schema": {"type": "string"}}}
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
            "/v1/publish": {
              "post": {
                "operationId": "publish",
                "security": [{"token": ["publish"]}],
                "summary": "Publish the body as it is",
                "parameters": [
                  {
                    "name": "topic",
                    "in": "query",
                    "description": "Topic name, without wildcards and outside $SYS/. The whole target has at most 8 KiB.",
                    "schema": {"type": "string", "minLength": 1, "pattern": "^[^+#\\u0000]+$"},
                    "required": true
                  },
                  {
                    "name": "qos",
                    "in": "query",
                    "description": "Quality of service.",
                    "schema": {"type": "integer", "minimum": 0, "maximum": 2, "default": 1}
                  },
                  {
                    "name": "retain",
                    "in": "query",
                    "description": "Whether the message is kept for later subscribers.",
                    "schema": {"type": "boolean", "default": false}
                  }
                ],
                "requestBody": {
                  "description": "The payload, of any type; it may be empty.",
                  "content": {"application/octet-stream": {}}
                },
                "responses": {
                  "200": {
                    "description": "The broker has taken the message.",
                    "content": {
                      "application/json": {
                        "schema": {"$ref": "#/components/schemas/PublishResult"}
                      }
                    }
                  },
                  "400": {"$ref": "#/components/responses/Invalid"},
                  "401": {"$ref": "#/components/responses/Unauthorized"},
                  "403": {"$ref": "#/components/responses/Forbidden"},
                  "429": {"$ref": "#/components/responses/TooManyFailures"},
                  "413": {"$ref": "#/components/responses/TooLarge"},
                  "415": {"$ref": "#/components/responses/UnsupportedMediaType"},
                  "503": {"$ref": "#/components/responses/Unavailable"},
                  "default": {"$ref": "#/components/responses/OtherProblem"}
                }
              }
            },
            "/v1/messages": {
              "post": {
                "operationId": "publishMessage",
                "security": [{"token": ["publish"]}],
                "summary": "Publish one message given as JSON",
                "requestBody": {
                  "required": true,
                  "content": {
                    "application/json": {
                      "schema": {"$ref": "#/components/schemas/MessageRequest"}
                    }
                  }
                },
                "responses": {
                  "200": {
                    "description": "The broker has taken the message.",
                    "content": {
                      "application/json": {
                        "schema": {"$ref": "#/components/schemas/PublishResult"}
                      }
                    }
                  },
                  "400": {"$ref": "#/components/responses/Invalid"},
                  "401": {"$ref": "#/components/responses/Unauthorized"},
                  "403": {"$ref": "#/components/responses/Forbidden"},
                  "429": {"$ref": "#/components/responses/TooManyFailures"},
                  "413": {"$ref": "#/components/responses/TooLarge"},
                  "415": {"$ref": "#/components/responses/UnsupportedMediaType"},
                  "503": {"$ref": "#/components/responses/Unavailable"},
                  "default": {"$ref": "#/components/responses/OtherProblem"}
                }
              }
            },
            "/v1/orders/{orderId}/status": {
              "post": {
                "operationId": "publishOrderStatus",
                "security": [{"token": ["publish"]}],
                "summary": "Tell a sales person's phone where an order stands",
                "description": "Publishes a hermes.v1.Envelope with a hermes.v1.OrderStatusUpdate. The body follows the JSON mapping of proto3: names in camelCase or snake_case, 64-bit integers as numbers or strings.",
                "parameters": [
                  {
                    "name": "orderId",
                    "in": "path",
                    "required": true,
                    "description": "Becomes a topic level.",
                    "schema": {
                      "type": "string",
                      "minLength": 1,
                      "pattern": "^[^/+#\\u0000]+$"
                    }
                  }
                ],
                "requestBody": {
                  "required": true,
                  "content": {
                    "application/json": {
                      "schema": {"$ref": "#/components/schemas/OrderStatusUpdate"}
                    }
                  }
                },
                "responses": {
                  "200": {
                    "description": "The broker has taken the message.",
                    "content": {
                      "application/json": {
                        "schema": {"$ref": "#/components/schemas/PublishResult"}
                      }
                    }
                  },
                  "400": {"$ref": "#/components/responses/Invalid"},
                  "401": {"$ref": "#/components/responses/Unauthorized"},
                  "403": {"$ref": "#/components/responses/Forbidden"},
                  "429": {"$ref": "#/components/responses/TooManyFailures"},
                  "413": {"$ref": "#/components/responses/TooLarge"},
                  "415": {"$ref": "#/components/responses/UnsupportedMediaType"},
                  "503": {"$ref": "#/components/responses/Unavailable"},
                  "default": {"$ref": "#/components/responses/OtherProblem"}
                }
              }
            },
            "/v1/clients": {
              "get": {
                "operationId": "listClients",
                "security": [{"token": ["read"]}],
                "summary": "Connected clients and sessions that wait",
                "parameters": [
                  {
                    "name": "connected",
                    "in": "query",
                    "description": "Only connected ones, or only those away.",
                    "schema": {"type": "boolean"}
                  },
                  {
                    "name": "prefix",
                    "in": "query",
                    "description": "Only client identifiers that begin with this.",
                    "schema": {"type": "string"}
                  },
                  {
                    "name": "user_name",
                    "in": "query",
                    "description": "Only this user's.",
                    "schema": {"type": "string"}
                  },
                  {
                    "name": "limit",
                    "in": "query",
                    "description": "Clients of a page.",
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
                    "schema": {"type": "string", "pattern": "^([0-9a-f]{2})*$", "maxLength": 1024}
                  }
                ],
                "responses": {
                  "200": {
                    "description": "A page, in the order of client identifiers by their bytes. A client that stays is on one page, whoever comes and goes.",
                    "content": {
                      "application/json": {
                        "schema": {"$ref": "#/components/schemas/ClientPage"}
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
            "/v1/clients/{id}": {
              "get": {
                "operationId": "getClient",
                "security": [{"token": ["read"]}],
                "summary": "One client in full",
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
                    "description": "The client.",
                    "content": {
                      "application/json": {
                        "schema": {"$ref": "#/components/schemas/ClientDetail"}
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
              },
              "delete": {
                "operationId": "disconnectClient",
                "security": [{"token": ["admin"]}],
                "summary": "Close a client's connection",
                "description": "The will is published and the session stays.",
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
                    "description": "Whether it was connected.",
                    "content": {
                      "application/json": {
                        "schema": {"$ref": "#/components/schemas/DisconnectResult"}
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
        """#
}
