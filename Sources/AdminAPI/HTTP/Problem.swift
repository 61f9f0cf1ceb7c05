import BrokerAPI
import Hummingbird

/// The reason for rejecting a request; becomes a problem document (RFC 9457).
struct Problem: Error, Equatable {
    var kind: Kind
    /// The fault and its place; untrusted parts are escaped.
    var detail: String
    var field: String?
    /// The cure: what the caller or an operator can do.
    var fix: String
    /// Headers that the status requires, such as `Allow`.
    var headers: HTTPFields = [:]
    /// The name of the request; `nil` for a line of a batch.
    var requestID: RequestID?

    init(
        _ kind: Kind, _ detail: String, field: String? = nil, fix: String,
        headers: HTTPFields = [:]
    ) {
        self.kind = kind
        self.detail = detail
        self.field = field
        self.fix = fix
        self.headers = headers
    }

    /// The document's members.
    var model: ProblemModel {
        ProblemModel(
            type: "urn:hermes:problem:\(kind.rawValue)", title: kind.title,
            status: kind.status.code, detail: detail, field: field, fix: fix,
            requestID: requestID?.text)
    }
}

extension Problem {
    /// The kinds of problems; the raw value ends the document's `type`.
    enum Kind: String, CaseIterable {
        case malformedRequest = "malformed-request"
        case invalidHeader = "invalid-header"
        case invalidQuery = "invalid-query"
        case invalidJSON = "invalid-json"
        case invalidField = "invalid-field"
        case invalidTopic = "invalid-topic"
        case invalidSetting = "invalid-setting"
        case reloadRefused = "reload-refused"
        case unexpectedBody = "unexpected-body"
        case unsupportedHeader = "unsupported-header"
        case unauthorized = "unauthorized"
        case missingScope = "missing-scope"
        case tooManyFailures = "too-many-failures"
        case topicNotAllowed = "topic-not-allowed"
        case rateExceeded = "rate-exceeded"
        case keyReused = "idempotency-key-reused"
        case keysAreOff = "idempotency-keys-off"
        case receiptsAreOff = "receipts-off"
        case crossOrigin = "cross-origin"
        case routeNotFound = "route-not-found"
        case clientNotFound = "client-not-found"
        case receiptNotFound = "receipt-not-found"
        case notRetained = "not-retained"
        case notScheduled = "not-scheduled"
        case alreadyScheduled = "already-scheduled"
        case tooManyScheduled = "too-many-scheduled"
        case boundToken = "bound-token"
        case tooManyTags = "too-many-tags"
        case tagsFull = "tags-full"
        case deviceNotFound = "device-not-found"
        case devicesFull = "devices-full"
        case pushNotFound = "push-not-found"
        case pushExists = "push-exists"
        case tooManyPushes = "too-many-pushes"
        case tokenNotFound = "token-not-found"
        case tokenExists = "token-exists"
        case tooManyTokens = "too-many-tokens"
        case tokenFile = "token-file"
        case userNotFound = "user-not-found"
        case tooManyUsers = "too-many-users"
        case noPasswordFile = "no-password-file"
        case passwordFile = "password-file"
        case invalidRules = "invalid-rules"
        case rulesChanged = "rules-changed"
        case noAccessFile = "no-acl-file"
        case accessFile = "acl-file"
        case banNotFound = "ban-not-found"
        case tooManyBans = "too-many-bans"
        case banFile = "ban-file"
        case cannotListen = "cannot-listen"
        case methodNotAllowed = "method-not-allowed"
        case requestTimeout = "request-timeout"
        case tooLarge = "too-large"
        case targetTooLong = "target-too-long"
        case unsupportedMediaType = "unsupported-media-type"
        case expectationFailed = "expectation-failed"
        case wrongHost = "wrong-host"
        case headersTooLarge = "headers-too-large"
        case internalError = "internal-error"
        case overloaded = "overloaded"
        case stopping = "stopping"
        case tooManyConnections = "too-many-connections"
        case storeRefuses = "store-refuses"
        case diskFull = "disk-full"
        case notReady = "not-ready"
        case unreadable = "unreadable"
        case backupFolder = "backup-folder"
        case backupFailed = "backup-failed"

        var status: HTTPResponse.Status {
            switch self {
            case .malformedRequest, .invalidHeader, .invalidQuery, .invalidJSON, .invalidField,
                .invalidTopic,
                .unexpectedBody, .unsupportedHeader, .keysAreOff, .receiptsAreOff,
                .invalidRules, .invalidSetting:
                .badRequest
            case .unauthorized: .unauthorized
            case .crossOrigin, .missingScope, .topicNotAllowed, .boundToken: .forbidden
            case .tooManyFailures, .rateExceeded: .tooManyRequests
            case .routeNotFound, .clientNotFound, .receiptNotFound, .notRetained, .tokenNotFound,
                .notScheduled, .pushNotFound, .deviceNotFound, .banNotFound, .userNotFound:
                .notFound
            case .methodNotAllowed: .methodNotAllowed
            case .requestTimeout: .requestTimeout
            case .tooLarge: .contentTooLarge
            case .targetTooLong: .uriTooLong
            case .unsupportedMediaType: .unsupportedMediaType
            case .expectationFailed: .expectationFailed
            case .wrongHost: .misdirectedRequest
            case .keyReused: .unprocessableContent
            case .headersTooLarge: .requestHeaderFieldsTooLarge
            case .backupFolder, .tokenExists, .tooManyTokens, .alreadyScheduled, .tooManyTags,
                .pushExists, .tooManyBans, .tooManyUsers, .noPasswordFile, .noAccessFile,
                .cannotListen, .reloadRefused:
                .conflict
            case .rulesChanged: .preconditionFailed
            case .internalError, .unreadable, .backupFailed: .internalServerError
            case .overloaded, .stopping, .tooManyConnections, .storeRefuses, .notReady,
                .tokenFile, .banFile, .passwordFile, .accessFile:
                .serviceUnavailable
            case .diskFull, .tooManyScheduled, .tagsFull, .tooManyPushes, .devicesFull:
                HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage")
            }
        }

        /// Seconds after which a repeat makes sense, for a problem that does not know better: a status
        /// that says "later" says when. `nil` for every other status.
        var retryAfter: String? {
            switch status.code {
            case 503: "5"
            // What is full empties as messages and devices end, or when somebody makes room.
            case 507: "30"
            default: nil
            }
        }

        var title: String {
            switch self {
            case .malformedRequest: "The request is not well-formed HTTP"
            case .invalidHeader: "A header is wrong"
            case .invalidQuery: "A query parameter is wrong"
            case .invalidJSON: "The body is not well-formed JSON"
            case .invalidField: "A field of the body or path is wrong"
            case .invalidSetting: "A key of the configuration cannot be set so"
            case .reloadRefused: "The configuration was read again and refused"
            case .invalidTopic: "The topic name cannot be published to"
            case .unexpectedBody: "This route takes no body"
            case .unsupportedHeader: "A header asks for what is not done here"
            case .unauthorized: "A valid token is required"
            case .missingScope: "The token does not allow this"
            case .tooManyFailures: "Too many wrong tokens came from this address"
            case .topicNotAllowed: "The token does not allow this topic"
            case .rateExceeded: "The token has published as much as it may"
            case .keyReused: "The key belongs to another message"
            case .keysAreOff: "No keys of messages are kept"
            case .receiptsAreOff: "No receipts of messages are kept"
            case .crossOrigin: "Requests from other web sites are refused"
            case .routeNotFound: "There is no such route"
            case .clientNotFound: "There is no such client"
            case .receiptNotFound: "There is no receipt of such a message"
            case .notRetained: "There is no retained message of that topic"
            case .notScheduled: "No such message is scheduled"
            case .alreadyScheduled: "Such a message is scheduled already"
            case .tooManyScheduled: "No more messages can be scheduled"
            case .boundToken: "The token is bound to topics"
            case .tooManyTags: "The client would have too many tags"
            case .tagsFull: "No more tags can be stored"
            case .deviceNotFound: "The client has no device"
            case .devicesFull: "No more devices can be stored"
            case .pushNotFound: "There is no such push"
            case .pushExists: "There is such a push already"
            case .tooManyPushes: "No more pushes can be stored"
            case .tokenNotFound: "There is no such token"
            case .tokenExists: "There is such a token already"
            case .tooManyTokens: "There are as many tokens as there can be"
            case .tokenFile: "The token file cannot be used"
            case .userNotFound: "There is no such user"
            case .tooManyUsers: "There are as many users as there can be"
            case .noPasswordFile: "The broker has no password file"
            case .passwordFile: "The password file cannot be used"
            case .invalidRules: "The access rules are not well-formed"
            case .rulesChanged: "The access rules are others by now"
            case .noAccessFile: "The broker has no access rules"
            case .accessFile: "The ACL file cannot be used"
            case .banNotFound: "There is no such ban"
            case .tooManyBans: "There are as many bans as there can be"
            case .banFile: "The file of bans cannot be used"
            case .cannotListen: "A listener cannot listen again"
            case .methodNotAllowed: "The route does not have this method"
            case .requestTimeout: "The request did not arrive in time"
            case .tooLarge: "The request is too large"
            case .targetTooLong: "The request target is too long"
            case .unsupportedMediaType: "The body has an unsupported type or encoding"
            case .expectationFailed: "The expectation cannot be met"
            case .wrongHost: "The Host header names another server"
            case .headersTooLarge: "The request headers are too large"
            case .internalError: "The server failed"
            case .overloaded: "The broker is busy"
            case .stopping: "The broker is stopping"
            case .tooManyConnections: "Too many connections are open"
            case .storeRefuses: "Nothing can be stored at present"
            case .diskFull: "The disk is full"
            case .notReady: "The broker is not ready"
            case .unreadable: "The store cannot be read"
            case .backupFolder: "The folder cannot take a backup"
            case .backupFailed: "The backup failed"
            }
        }
    }
}

extension Problem {
    /// The data plane did not accept a command; the caller may try again.
    init(_ unavailable: BrokerUnavailable) {
        switch unavailable {
        case .overloaded:
            self.init(
                .overloaded, "The broker's queue for requests is full.",
                fix: "Send the request again after the seconds named in Retry-After.",
                headers: [.retryAfter: "1"])
        case .stopping:
            self.init(
                .stopping, "The broker is shutting down and takes no more requests.",
                fix: "Send the request again once the broker has restarted.",
                headers: [.retryAfter: "5"])
        case .storeRefuses:
            self.init(
                .storeRefuses, "The store takes no new messages; nothing was published.",
                fix: "Send the request again later; GET /readyz says why.",
                headers: [.retryAfter: "5"])
        case .diskFull:
            self.init(
                .diskFull,
                "The disk has no room for new messages; nothing was published.",
                fix: "Free space on the file system of data_directory, then send it again.",
                headers: [.retryAfter: "30"])
        case .unreadable(let reason):
            self.init(.unreadable, "\(reason)", fix: "Look at it with: hermesctl store check")
        }
    }

    static let keyReused = Problem(
        .keyReused,
        "Another message of this token was published with this key (Idempotency-Key, or "
            + "message_id) in the last 24 hours; nothing was published.",
        fix: "To repeat that message, send exactly what was sent then; a new one needs a new key."
    )

    static let keysAreOff = Problem(
        .keysAreOff,
        "This broker keeps no keys, so it could not tell a repeat; nothing was published.",
        fix: "Leave the key out, or set limits.idempotency_keys above 0.")

    static let receiptsAreOff = Problem(
        .receiptsAreOff,
        "This broker keeps no receipts, so it could not follow the message; nothing was published.",
        field: "receipts", fix: "Leave receipts out, or set limits.receipts above 0.")

    /// A listener has as many connections with requests under way as it may have.
    static func tooManyConnections(_ detail: String) -> Problem {
        Problem(
            .tooManyConnections, detail, fix: "Send the request again later.",
            headers: [.retryAfter: "5"])
    }

    /// A backup failed; its partial files were removed.
    init(_ failure: BackupFailure) {
        switch failure {
        case .unusableFolder(let reason):
            self.init(
                .backupFolder, reason, field: "directory",
                fix: "Name a folder that does not exist yet in one that does, or an empty one of "
                    + "mode 0700, outside the data directory.")
        case .outOfSpace(let reason):
            self.init(
                .diskFull, reason,
                fix: "Free space on the file system of that folder, or name one on another.")
        case .nothingStored:
            self.init(
                .backupFailed, "This broker stores nothing: its durability is none.",
                fix: "Set durability to sync or interval, and start it again.")
        case .failed(let reason):
            self.init(
                .backupFailed, reason,
                fix: "Remove the cause, and ask again; GET /readyz tells how the store is.")
        }
    }
}
