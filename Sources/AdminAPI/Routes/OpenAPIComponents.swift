extension OpenAPIDocument {
    /// The part of the document that its paths refer to, up to the last brace.
    // swift-format-ignore
    static let components = #"""
          "components": {
            "securitySchemes": {
              "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token of hermesctl tokens create, with the scopes publish, read or admin, or the administrator's of admin.token, which may do everything."
              }
            },
            "responses": {
              "Invalid": {
                "description": "The request is malformed.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                }
              },
              "Unauthorized": {
                "description": "A valid token is required.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                },
                "headers": {
                  "WWW-Authenticate": {
                    "description": "The scheme to use.",
                    "schema": {"type": "string"}
                  }
                }
              },
              "Forbidden": {
                "description": "The token lacks the scope of the operation, or the request comes from another web origin.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                },
                "headers": {
                  "WWW-Authenticate": {
                    "description": "The missing scope, where that is the reason.",
                    "schema": {"type": "string"}
                  }
                }
              },
              "TooManyFailures": {
                "description": "The token is not known, and too many unknown ones came from this address.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                },
                "headers": {
                  "Retry-After": {
                    "description": "Seconds to wait.",
                    "schema": {"type": "string"}
                  }
                }
              },
              "NotFound": {
                "description": "There is no such client.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                }
              },
              "TooLarge": {
                "description": "The body or the message is too large.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                }
              },
              "UnsupportedMediaType": {
                "description": "The body has an unsupported type or encoding.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                }
              },
              "Unavailable": {
                "description": "The broker is busy or stopping.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                },
                "headers": {
                  "Retry-After": {
                    "description": "Seconds to wait.",
                    "schema": {"type": "string"}
                  }
                }
              },
              "NotReady": {
                "description": "Not everything is acknowledged durably, or damage waits for an operator; detail says why.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                }
              },
              "BackupFolder": {
                "description": "The folder cannot take a backup.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                }
              },
              "DiskFull": {
                "description": "There is no room.",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                }
              },
              "OtherProblem": {
                "description": "The server's limits or rules refuse the request (403, 408, 414, 417, 421, 431), or it failed (500); publishes are refused while the disk is full (507).",
                "content": {
                  "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"}
                  }
                }
              }
            },
            "schemas": {
              "Problem": {
                "type": "object",
                "required": ["type", "title", "status", "detail"],
                "properties": {
                  "type": {
                    "type": "string",
                    "description": "urn:hermes:problem: and the kind."
                  },
                  "title": {"type": "string"},
                  "status": {"type": "integer"},
                  "detail": {"type": "string"},
                  "field": {
                    "type": "string",
                    "description": "The parameter, header or field at fault."
                  },
                  "fix": {"type": "string", "description": "What to do."}
                }
              },
              "Health": {
                "type": "object",
                "required": ["status", "version"],
                "properties": {"status": {"const": "ok"}, "version": {"type": "string"}}
              },
              "Readiness": {
                "type": "object",
                "required": ["status", "durability"],
                "properties": {
                  "status": {"const": "ready"},
                  "durability": {"enum": ["none", "interval", "sync"]}
                }
              },
              "QueuePage": {
                "type": "object",
                "required": ["client_id", "messages"],
                "properties": {
                  "client_id": {"type": "string"},
                  "messages": {
                    "type": "array",
                    "items": {"$ref": "#/components/schemas/QueuedMessage"}
                  },
                  "next": {
                    "type": "string",
                    "pattern": "^[0-9]+$",
                    "description": "Pass as cursor for the next page; absent at the end."
                  }
                }
              },
              "QueuedMessage": {
                "type": "object",
                "required": ["position", "state", "qos", "retain", "payload_bytes"],
                "properties": {
                  "position": {"type": "integer", "minimum": 0},
                  "state": {"enum": ["waiting", "in_flight", "released"]},
                  "topic": {"type": "string", "description": "Absent once it is released."},
                  "qos": {"type": "integer", "minimum": 0, "maximum": 2},
                  "retain": {"type": "boolean"},
                  "payload_bytes": {"type": "integer", "minimum": 0},
                  "expires_at_ms": {"type": "integer", "format": "int64"}
                }
              },
              "QueueDropResult": {
                "type": "object",
                "required": ["client_id", "dropped"],
                "properties": {
                  "client_id": {"type": "string"},
                  "dropped": {"type": "integer", "minimum": 0}
                }
              },
              "AcceptLossResult": {
                "type": "object",
                "required": ["accepted"],
                "properties": {"accepted": {"type": "array", "items": {"type": "string"}}}
              },
              "BackupResult": {
                "type": "object",
                "required": ["directory"],
                "properties": {"directory": {"type": "string"}}
              },
              "Store": {
                "type": "object",
                "description": "The durable store; absent with durability none.",
                "required": [
                  "commits",
                  "committed_bytes",
                  "failures",
                  "sync_us",
                  "longest_sync_us",
                  "longest_commit_us",
                  "moved_segments",
                  "moved_messages",
                  "waiting_segments",
                  "journal_bytes",
                  "database_bytes",
                  "free_bytes",
                  "damage"
                ],
                "properties": {
                  "not_ready_reason": {"type": "string"},
                  "commits": {"type": "integer", "minimum": 0},
                  "committed_bytes": {"type": "integer", "minimum": 0},
                  "failures": {"type": "integer", "minimum": 0},
                  "sync_us": {"type": "integer", "minimum": 0},
                  "longest_sync_us": {"type": "integer", "minimum": 0},
                  "longest_commit_us": {"type": "integer", "minimum": 0},
                  "moved_segments": {"type": "integer", "minimum": 0},
                  "moved_messages": {"type": "integer", "minimum": 0},
                  "waiting_segments": {"type": "integer", "minimum": 0},
                  "journal_bytes": {"type": "integer", "minimum": 0},
                  "database_bytes": {"type": "integer", "minimum": 0},
                  "free_bytes": {"type": "integer", "minimum": 0},
                  "damage": {"type": "array", "items": {"type": "string"}},
                  "backup_percent": {"type": "integer", "minimum": 0, "maximum": 100}
                }
              },
              "PublishResult": {
                "type": "object",
                "required": [
                  "message_id",
                  "durability",
                  "matched",
                  "online",
                  "queued",
                  "dropped",
                  "duplicate"
                ],
                "properties": {
                  "message_id": {"type": "string"},
                  "durability": {"enum": ["none", "interval", "sync"]},
                  "matched": {"type": "integer", "minimum": 0},
                  "online": {"type": "integer", "minimum": 0},
                  "queued": {"type": "integer", "minimum": 0},
                  "dropped": {"type": "integer", "minimum": 0},
                  "duplicate": {"type": "boolean"}
                }
              },
              "MessageRequest": {
                "type": "object",
                "required": ["topic"],
                "properties": {
                  "topic": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 65535,
                    "pattern": "^[^+#\\u0000]+$",
                    "description": "Without wildcards, and outside $SYS/."
                  },
                  "payload": {
                    "type": ["string", "null"],
                    "description": "The payload as text."
                  },
                  "payload_base64": {
                    "type": ["string", "null"],
                    "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
                    "description": "The payload as base64."
                  },
                  "qos": {
                    "type": ["integer", "null"],
                    "minimum": 0,
                    "maximum": 2,
                    "default": 1
                  },
                  "retain": {"type": ["boolean", "null"], "default": false},
                  "message_id": {"type": ["string", "null"], "pattern": "^[!-~]{1,128}$"},
                  "expires_in_s": {
                    "type": ["integer", "null"],
                    "minimum": 1,
                    "maximum": 4294967295
                  },
                  "collapse_key": {"type": "null", "description": "Not supported yet."}
                },
                "description": "Exactly one of payload and payload_base64.",
                "additionalProperties": false,
                "oneOf": [
                  {
                    "required": ["payload"],
                    "properties": {
                      "payload": {"type": "string"},
                      "payload_base64": {"type": "null"}
                    }
                  },
                  {
                    "required": ["payload_base64"],
                    "properties": {
                      "payload_base64": {"type": "string"},
                      "payload": {"type": "null"}
                    }
                  }
                ]
              },
              "OrderStatusUpdate": {
                "type": "object",
                "required": ["status"],
                "properties": {
                  "salesId": {
                    "type": "string",
                    "minLength": 1,
                    "pattern": "^[^/+#\\u0000]+$",
                    "description": "Becomes a topic level."
                  },
                  "sales_id": {
                    "type": "string",
                    "minLength": 1,
                    "pattern": "^[^/+#\\u0000]+$"
                  },
                  "status": {
                    "anyOf": [
                      {
                        "enum": [
                          "UNSPECIFIED",
                          "SUBMITTED",
                          "UNDER_REVIEW",
                          "SUPPLEMENT_REQUIRED",
                          "APPROVED",
                          "REJECTED",
                          "SIGNED",
                          "FUNDED",
                          "CANCELLED"
                        ]
                      },
                      {
                        "enum": [
                          "ORDER_STATUS_UNSPECIFIED",
                          "ORDER_STATUS_SUBMITTED",
                          "ORDER_STATUS_UNDER_REVIEW",
                          "ORDER_STATUS_SUPPLEMENT_REQUIRED",
                          "ORDER_STATUS_APPROVED",
                          "ORDER_STATUS_REJECTED",
                          "ORDER_STATUS_SIGNED",
                          "ORDER_STATUS_FUNDED",
                          "ORDER_STATUS_CANCELLED"
                        ]
                      },
                      {"type": "integer", "minimum": 0, "maximum": 8}
                    ]
                  },
                  "reason": {"type": ["string", "null"], "pattern": "^[^\\u0000]*$"},
                  "updatedAtMs": {"$ref": "#/components/schemas/UnixMilliseconds"},
                  "updated_at_ms": {"$ref": "#/components/schemas/UnixMilliseconds"},
                  "details": {
                    "type": ["object", "null"],
                    "propertyNames": {"type": "string", "pattern": "^[^\\u0000]*$"},
                    "additionalProperties": {"type": "string", "pattern": "^[^\\u0000]*$"}
                  }
                },
                "additionalProperties": false,
                "description": "orderId (or order_id) may repeat the order of the path; salesId is required.",
                "oneOf": [{"required": ["salesId"]}, {"required": ["sales_id"]}],
                "not": {"required": ["updatedAtMs", "updated_at_ms"]}
              },
              "UnixMilliseconds": {
                "description": "UNIX time in milliseconds; the time of the request when it is absent.",
                "anyOf": [
                  {"type": "integer", "format": "int64", "minimum": 1},
                  {"type": "string", "pattern": "^[1-9][0-9]{0,17}$"},
                  {"type": "null"}
                ]
              },
              "ClientSummary": {
                "type": "object",
                "required": [
                  "client_id",
                  "connected",
                  "protocol",
                  "clean_session",
                  "keep_alive_s",
                  "since_ms",
                  "subscriptions",
                  "in_flight",
                  "queued",
                  "queued_bytes"
                ],
                "properties": {
                  "client_id": {"type": "string"},
                  "user_name": {"type": "string"},
                  "connected": {"type": "boolean"},
                  "address": {"type": "string"},
                  "protocol": {"enum": ["3.1", "3.1.1"]},
                  "clean_session": {"type": "boolean"},
                  "keep_alive_s": {"type": "integer", "minimum": 0},
                  "since_ms": {"type": "integer", "format": "int64"},
                  "subscriptions": {"type": "integer", "minimum": 0},
                  "in_flight": {"type": "integer", "minimum": 0},
                  "queued": {"type": "integer", "minimum": 0},
                  "queued_bytes": {"type": "integer", "minimum": 0}
                }
              },
              "ClientPage": {
                "type": "object",
                "required": ["clients"],
                "properties": {
                  "clients": {
                    "type": "array",
                    "items": {"$ref": "#/components/schemas/ClientSummary"}
                  },
                  "next": {
                    "type": "string",
                    "description": "Pass as cursor for the next page; absent at the end."
                  }
                }
              },
              "ClientDetail": {
                "type": "object",
                "required": [
                  "summary",
                  "subscription_list",
                  "inbound_qos2",
                  "unacknowledged_publishes",
                  "unsent_bytes",
                  "reading_paused",
                  "publishes_received",
                  "publishes_sent",
                  "publishes_acknowledged",
                  "dropped"
                ],
                "properties": {
                  "summary": {"$ref": "#/components/schemas/ClientSummary"},
                  "subscription_list": {
                    "type": "array",
                    "items": {"$ref": "#/components/schemas/Subscription"}
                  },
                  "will_topic": {"type": "string"},
                  "last_packet_ms_ago": {"type": "integer", "format": "int64"},
                  "inbound_qos2": {"type": "integer", "minimum": 0},
                  "unacknowledged_publishes": {"type": "integer", "minimum": 0},
                  "unsent_bytes": {"type": "integer", "minimum": 0},
                  "reading_paused": {"type": "boolean"},
                  "publishes_received": {"type": "integer", "minimum": 0},
                  "publishes_sent": {"type": "integer", "minimum": 0},
                  "publishes_acknowledged": {"type": "integer", "minimum": 0},
                  "dropped": {"$ref": "#/components/schemas/Drops"},
                  "last_disconnect_reason": {"type": "string"},
                  "take_overs": {"$ref": "#/components/schemas/TakeOvers"}
                }
              },
              "TakeOvers": {
                "type": "object",
                "description": "Two clients have this identifier and throw each other out again and again; absent otherwise.",
                "required": ["count", "delay_ms", "peers"],
                "properties": {
                  "count": {"type": "integer", "minimum": 0},
                  "delay_ms": {"type": "integer", "format": "int64", "minimum": 0},
                  "peers": {"type": "array", "items": {"type": "string"}},
                  "waiting": {"type": "string"}
                }
              },
              "Subscription": {
                "type": "object",
                "required": ["filter", "qos"],
                "properties": {
                  "filter": {"type": "string"},
                  "qos": {"type": "integer", "minimum": 0, "maximum": 2}
                }
              },
              "Drops": {
                "type": "object",
                "description": "Messages given up, by reason.",
                "additionalProperties": {"type": "integer", "minimum": 0}
              },
              "DisconnectResult": {
                "type": "object",
                "required": ["client_id", "disconnected"],
                "properties": {
                  "client_id": {"type": "string"},
                  "disconnected": {"type": "boolean"}
                }
              },
              "Memory": {
                "type": "object",
                "required": ["used_bytes", "pressure", "unfinished_bytes"],
                "properties": {
                  "used_bytes": {"type": "integer", "minimum": 0},
                  "limit_bytes": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "limits.memory; absent when there is none."
                  },
                  "pressure": {"enum": ["none", "newcomers", "publishers", "readers"]},
                  "unfinished_bytes": {"type": "integer", "minimum": 0}
                }
              },
              "Status": {
                "type": "object",
                "required": [
                  "version",
                  "started_at_ms",
                  "uptime_s",
                  "durability",
                  "listeners",
                  "connections",
                  "connections_pending",
                  "connections_total",
                  "connections_refused",
                  "sessions",
                  "persistent_sessions",
                  "subscriptions",
                  "retained",
                  "queued",
                  "queued_bytes",
                  "in_flight",
                  "publishes_received",
                  "publishes_sent",
                  "bytes_received",
                  "bytes_sent",
                  "dropped",
                  "protocol_violations",
                  "limits_reached",
                  "publishers_paused"
                ],
                "properties": {
                  "version": {"type": "string"},
                  "started_at_ms": {"type": "integer", "format": "int64"},
                  "uptime_s": {"type": "integer", "minimum": 0},
                  "durability": {"enum": ["none", "interval", "sync"]},
                  "durability_interval_ms": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "With interval: what a power cut may take back."
                  },
                  "listeners": {"type": "array", "items": {"type": "string"}},
                  "connections": {"type": "integer", "minimum": 0},
                  "connections_pending": {"type": "integer", "minimum": 0},
                  "connections_total": {"type": "integer", "minimum": 0},
                  "connections_refused": {"type": "integer", "minimum": 0},
                  "sessions": {"type": "integer", "minimum": 0},
                  "persistent_sessions": {"type": "integer", "minimum": 0},
                  "subscriptions": {"type": "integer", "minimum": 0},
                  "retained": {"type": "integer", "minimum": 0},
                  "queued": {"type": "integer", "minimum": 0},
                  "queued_bytes": {"type": "integer", "minimum": 0},
                  "in_flight": {"type": "integer", "minimum": 0},
                  "publishes_received": {"type": "integer", "minimum": 0},
                  "publishes_sent": {"type": "integer", "minimum": 0},
                  "bytes_received": {"type": "integer", "minimum": 0},
                  "bytes_sent": {"type": "integer", "minimum": 0},
                  "dropped": {"$ref": "#/components/schemas/Drops"},
                  "protocol_violations": {"type": "integer", "minimum": 0},
                  "limits_reached": {
                    "type": "object",
                    "description": "How often limits were met, by the keys below limits in the configuration.",
                    "additionalProperties": {"type": "integer", "minimum": 0}
                  },
                  "publishers_paused": {"type": "integer", "minimum": 0},
                  "memory": {"$ref": "#/components/schemas/Memory"},
                  "store": {"$ref": "#/components/schemas/Store"}
                }
              }
            }
          }
        }
        """#
}
