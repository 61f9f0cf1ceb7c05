import CNgHTTP2

/// The client's side of one HTTP/2 connection, without a socket: bytes go in, bytes and events come
/// out (RFC 9113, by nghttp2).
///
/// Owned by one thread. Whatever the server sends is bounded: fields and body of an answer, and
/// frames that ask for answers (by nghttp2).
package final class HTTP2Client {
    package enum Event {
        /// An answer has come whole; `body` has at most ``mostBodyBytes``.
        /// `retryAfter` is the time in milliseconds after which the server may be asked again, as it
        /// says (RFC 9110, section 10.2.3); `nil` without one.
        case answered(tag: UInt32, status: Int, body: [UInt8], retryAfter: UInt64?)
        /// The stream ended without an answer. The request was not processed if `isUnprocessed`.
        case ended(tag: UInt32, isUnprocessed: Bool)
        /// The server takes no further requests on this connection.
        case goAway(reason: String)
    }

    /// A protocol error; the connection is of no use any more.
    package struct Failure: Error {
        package let description: String
    }

    /// Bytes of an answer's body that are kept.
    package static let mostBodyBytes = 8_192
    /// Fields of an answer.
    private static let mostFields = 64
    /// Seconds of a `retry-after` that are believed.
    private static let mostRetrySeconds: UInt64 = 86_400
    /// Bytes of the text of a GOAWAY that are read.
    private static let mostGoAwayBytes = 256

    private struct Stream {
        var tag: UInt32
        /// 0 until the request has been submitted.
        var number: Int32 = 0
        var payload: [UInt8]
        var sent = 0
        var status = 0
        var fields = 0
        var retryAfter: UInt64?
        var body: [UInt8] = []
        var isFree = false
    }

    private var session: OpaquePointer?
    private var streams: [Stream] = []
    private var free: [Int] = []
    /// Streams without an answer.
    package private(set) var openCount = 0
    /// True once the server has said that it takes no further requests.
    package private(set) var isGoingAway = false
    /// True while a PING of ours is not answered.
    package private(set) var awaitsPing = false
    private var events: [Event] = []

    package init() throws(Failure) {
        var callbacks: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks else {
            throw Failure(description: "no memory for a connection")
        }
        defer { nghttp2_session_callbacks_del(callbacks) }
        Self.set(callbacks)
        let own = Unmanaged.passUnretained(self).toOpaque()
        guard nghttp2_session_client_new(&session, callbacks, own) == 0 else {
            throw Failure(description: "no memory for a connection")
        }
        let settings = [
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue), value: 16_384),
        ]
        try check(
            nghttp2_submit_settings(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count))
    }

    deinit { nghttp2_session_del(session) }

    // MARK: Requests

    /// Streams that the server allows at the same time, as it says now.
    package var mostStreams: Int {
        Int(
            nghttp2_session_get_remote_settings(
                session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    /// True while a request can be sent on a new stream.
    package var takesRequests: Bool {
        !isGoingAway && nghttp2_session_check_request_allowed(session) != 0
    }

    /// Begins a request. Its events carry `tag`.
    package func submit(_ fields: RequestFields, payload: [UInt8], tag: UInt32) throws(Failure) {
        let place: Int
        if let index = free.popLast() {
            place = index
            streams[index] = Stream(tag: tag, payload: payload)
        } else {
            place = streams.count
            streams.append(Stream(tag: tag, payload: payload))
        }
        var provider = nghttp2_data_provider()
        provider.read_callback = { _, _, buffer, length, flags, source, client in
            guard let client, let buffer, let flags, let source else {
                return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
            }
            let place = Int(bitPattern: source.pointee.ptr) - 1
            return HTTP2Client.of(client).read(place, into: buffer, most: length, flags)
        }
        // Places count from 1 here, since 0 is no pointer.
        let own = UnsafeMutableRawPointer(bitPattern: place + 1)
        provider.source.ptr = own
        let stream = fields.withFields {
            nghttp2_submit_request(session, nil, $0, $1, &provider, own)
        }
        guard stream >= 0 else {
            release(place)
            throw Failure(description: String(cString: nghttp2_strerror(stream)))
        }
        streams[place].number = stream
        openCount += 1
    }

    /// Gives a request up; an event says that its stream has ended.
    package func cancel(_ tag: UInt32) {
        let found = streams.first { !$0.isFree && $0.tag == tag && $0.number != 0 }
        guard let found else { return }
        _ = nghttp2_submit_rst_stream(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), found.number,
            UInt32(NGHTTP2_CANCEL.rawValue))
    }

    private func read(
        _ place: Int, into buffer: UnsafeMutablePointer<UInt8>, most: Int,
        _ flags: UnsafeMutablePointer<UInt32>
    ) -> Int {
        guard streams.indices.contains(place) else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let count = min(most, streams[place].payload.count - streams[place].sent)
        streams[place].payload.withUnsafeBufferPointer { payload in
            if let base = payload.baseAddress, count > 0 {
                buffer.update(from: base + streams[place].sent, count: count)
            }
        }
        streams[place].sent += count
        if streams[place].sent == streams[place].payload.count {
            flags.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue)
        }
        return count
    }

    private func release(_ place: Int) {
        streams[place] = Stream(tag: 0, payload: [], isFree: true)
        free.append(place)
    }

    /// Sends a PING, whose answer clears ``awaitsPing``.
    package func ping() throws(Failure) {
        awaitsPing = true
        try check(nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil))
    }

    // MARK: Bytes

    /// Takes bytes that the server sent.
    package func input(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        guard let base = bytes.baseAddress else { return }
        let count = nghttp2_session_mem_recv(
            session, base.assumingMemoryBound(to: UInt8.self), bytes.count)
        guard count >= 0 else {
            throw Failure(description: String(cString: nghttp2_strerror(CInt(count))))
        }
        // nghttp2 wants neither when it has ended the connection because of an error.
        guard wantsInput || wantsOutput else {
            throw Failure(description: "the server broke the rules of HTTP/2")
        }
    }

    package var wantsInput: Bool { nghttp2_session_want_read(session) != 0 }
    package var wantsOutput: Bool { nghttp2_session_want_write(session) != 0 }

    /// Appends what is to be sent, until `bytes` has about `most` bytes or all is there.
    package func output(into bytes: inout [UInt8], most: Int) throws(Failure) {
        while bytes.count < most {
            var chunk: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &chunk)
            guard count >= 0 else {
                throw Failure(description: String(cString: nghttp2_strerror(CInt(count))))
            }
            guard count > 0, let chunk else { return }
            bytes.append(contentsOf: UnsafeBufferPointer(start: chunk, count: count))
        }
    }

    /// Takes what has happened since the last call.
    package func takeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    private func check(_ result: CInt) throws(Failure) {
        guard result == 0 else {
            throw Failure(description: String(cString: nghttp2_strerror(result)))
        }
    }

    // MARK: Callbacks

    private static func of(_ pointer: UnsafeMutableRawPointer) -> HTTP2Client {
        Unmanaged<HTTP2Client>.fromOpaque(pointer).takeUnretainedValue()
    }

    /// The place of a stream; `nil` for one that is none of a request.
    private func place(of stream: Int32) -> Int? {
        guard let data = nghttp2_session_get_stream_user_data(session, stream) else { return nil }
        let place = Int(bitPattern: data) - 1
        return streams.indices.contains(place) && !streams[place].isFree ? place : nil
    }

    private static func set(_ callbacks: OpaquePointer) {
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, client in
            guard let client, let frame, let name, let value else { return 0 }
            return HTTP2Client.of(client).field(
                of: frame.pointee.hd.stream_id,
                UnsafeBufferPointer(start: name, count: nameCount),
                UnsafeBufferPointer(start: value, count: valueCount))
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, data, count, client in
            guard let client, let data else { return 0 }
            HTTP2Client.of(client).data(
                of: stream, UnsafeBufferPointer(start: data, count: count))
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _, stream, code, client in
            guard let client else { return 0 }
            HTTP2Client.of(client).closed(stream, code)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, client in
            guard let client, let frame else { return 0 }
            HTTP2Client.of(client).received(frame)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) {
            _, frame, _, client in
            guard let client, let frame,
                frame.pointee.hd.type == UInt8(NGHTTP2_HEADERS.rawValue)
            else { return 0 }
            HTTP2Client.of(client).closed(
                frame.pointee.hd.stream_id, UInt32(NGHTTP2_REFUSED_STREAM.rawValue))
            return 0
        }
    }

    private func field(
        of stream: Int32, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> CInt {
        guard let place = place(of: stream) else { return 0 }
        streams[place].fields += 1
        guard streams[place].fields <= Self.mostFields else {
            return CInt(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        // Three digits, as nghttp2 has checked.
        if name.elementsEqual(":status".utf8) {
            streams[place].status = value.reduce(0) { $0 &* 10 &+ Int($1 &- 0x30) }
        }
        // A date, which it may be as well, is left out.
        if name.elementsEqual("retry-after".utf8),
            let seconds = UInt64(String(decoding: value.prefix(20), as: UTF8.self))
        {
            streams[place].retryAfter = 1_000 * min(seconds, Self.mostRetrySeconds)
        }
        return 0
    }

    private func data(of stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let place = place(of: stream) else { return }
        let room = Self.mostBodyBytes - streams[place].body.count
        streams[place].body.append(contentsOf: bytes.prefix(room))
    }

    private func closed(_ stream: Int32, _ code: UInt32) {
        guard let place = place(of: stream) else { return }
        let ended = streams[place]
        openCount -= 1
        release(place)
        if code == UInt32(NGHTTP2_NO_ERROR.rawValue), ended.status >= 200 {
            events.append(
                .answered(
                    tag: ended.tag, status: ended.status, body: ended.body,
                    retryAfter: ended.retryAfter))
        } else {
            events.append(
                .ended(
                    tag: ended.tag,
                    isUnprocessed: code == UInt32(NGHTTP2_REFUSED_STREAM.rawValue)))
        }
    }

    private func received(_ frame: UnsafePointer<nghttp2_frame>) {
        switch UInt32(frame.pointee.hd.type) {
        case NGHTTP2_GOAWAY.rawValue:
            let goAway = frame.pointee.goaway
            let text = UnsafeBufferPointer(
                start: goAway.opaque_data,
                count: min(goAway.opaque_data_len, Self.mostGoAwayBytes))
            isGoingAway = true
            events.append(
                .goAway(reason: AppleAnswer(status: 0, body: Array(text)).reason))
        case NGHTTP2_PING.rawValue:
            if frame.pointee.hd.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0 {
                awaitsPing = false
            }
        default: break
        }
    }
}
