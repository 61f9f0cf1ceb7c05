import Transport

/// A client's frames yield exactly the data that a decoder of fifty lines finds, in whatever pieces they
/// come; any bytes as a request are an upgrade or one flaw.
///
/// An input is a mode and a seed for the pieces, then, for frames, a bound on their payload, then a stream.
/// The mode's bits say whether it is a request, and where that may bring a token.
enum WebSocketCheck {
    /// So long a stream has no flood of frames without data, which depends on the pieces.
    private static let longestStream = 1_500

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        var program = ByteProgram(input)
        let mode = program.byte()
        let seed = UInt64(program.byte())
        guard mode & 1 == 1 else {
            let mostPayload = 16 << Int(program.byte() & 0xF)
            let stream = Array(program.rest().prefix(longestStream))
            try FrameRun.check(stream, mostPayload: mostPayload, seed: seed, trace)
            return
        }
        let run = RequestRun(
            rules: WebSocketRules(
                path: "/mqtt", origins: ["https://a.example"], readsTokenInQuery: mode & 2 == 2,
                readsTokenInHeader: mode & 4 == 4))
        try run.check(program.rest(), trace)
    }
}

/// Reads a stream of frames with the decoder and with a model.
private enum FrameRun {
    private struct Outcome: Equatable {
        var data: [UInt8] = []
        var ping: [UInt8]?
        var close: UInt16?
        var flaw: WebSocketFlaw?
        /// Bytes behind the last complete header or control frame, while nothing has ended the stream.
        var rest = 0
    }

    static func check(
        _ stream: [UInt8], mostPayload: Int, seed: UInt64, _ trace: ((String) -> Void)?
    ) throws(CheckFailure) {
        let expected = model(stream, mostPayload: mostPayload)
        trace?("\(stream.count) bytes, payloads of \(mostPayload) at most: \(expected)")
        for pieces in [nil, 1, seed] as [UInt64?] {
            let found = try read(stream, mostPayload: mostPayload, seed: pieces)
            try CheckFailure.unless(found == expected, "in pieces (\(pieces ?? 0)): \(found)")
        }
    }

    /// `seed` draws the pieces: `nil` for one, 1 for single bytes.
    private static func read(
        _ stream: [UInt8], mostPayload: Int, seed: UInt64?
    ) throws(CheckFailure) -> Outcome {
        var (decoder, outcome, begun) = (FrameDecoder(), Outcome(), [UInt8]())
        var state = seed ?? 0
        var start = 0
        let control = UnsafeMutableRawBufferPointer.allocate(
            byteCount: FrameDecoder.largestControlPayload, alignment: 1)
        defer { control.deallocate() }
        guard let scratch = control.baseAddress else { return outcome }
        while start < stream.count, outcome.close == nil, outcome.flaw == nil {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let size = seed == nil ? stream.count : seed == 1 ? 1 : 1 + Int(state >> 59)
            let end = min(stream.count, start + size)
            // The buffer has exactly its size, so that a sanitizer sees a byte beyond it.
            let place = UnsafeMutableRawBufferPointer.allocate(
                byteCount: begun.count + end - start, alignment: 1)
            defer { place.deallocate() }
            place.copyBytes(from: begun + stream[start..<end])
            let result = decoder.decode(place, mostPayload: mostPayload, control: scratch)
            try CheckFailure.unless(
                result.produced <= result.consumed && result.consumed <= place.count,
                "\(result) of \(place.count) bytes")
            outcome.data += place[..<result.produced]
            if let size = result.pingSize { outcome.ping = Array(control[..<size]) }
            begun = Array(place[result.consumed...])
            outcome.close = result.close?.rawValue
            outcome.flaw = result.flaw
            start = end
            guard outcome.close == nil, outcome.flaw == nil else { break }
            try CheckFailure.unless(
                begun.count <= FrameDecoder.mostUnread, "\(begun.count) bytes are left unread")
            outcome.rest = begun.count
        }
        if outcome.close != nil || outcome.flaw != nil { outcome.rest = 0 }
        return outcome
    }

    /// Section 5 of RFC 6455, frame by frame.
    private static func model(_ stream: [UInt8], mostPayload: Int) -> Outcome {
        var (outcome, place, continues) = (Outcome(), 0, false)
        while true {
            let rest = Array(stream[place...])
            outcome.rest = rest.count
            guard rest.count >= 2 else { return outcome }
            let (isFinal, opcode) = (rest[0] >= 0x80, rest[0] & 0xF)
            let isControl = opcode >= 8
            let short = Int(rest[1] & 0x7F)
            func flawed(_ flaw: WebSocketFlaw) -> Outcome {
                var outcome = outcome
                (outcome.flaw, outcome.rest) = (flaw, 0)
                return outcome
            }
            if rest[0] & 0x70 != 0 { return flawed(.reservedBits) }
            if ![0, 1, 2, 8, 9, 10].contains(opcode) { return flawed(.reservedOpcode) }
            if rest[1] < 0x80 { return flawed(.unmasked) }
            if opcode == 1 { return flawed(.textFrame) }
            if opcode == 2, continues { return flawed(.interruptedMessage) }
            if opcode == 0, !continues { return flawed(.continuation) }
            if isControl, !isFinal { return flawed(.fragmentedControl) }
            if isControl, short > 125 { return flawed(.longControl) }
            let more = short == 126 ? 2 : short == 127 ? 8 : 0
            guard rest.count >= 2 + more else { return outcome }
            let length = rest[2..<2 + more].reduce(UInt64(more == 0 ? short : 0)) {
                $0 << 8 | UInt64($1)
            }
            if length >= 1 << 63 { return flawed(.frameTooLong) }
            if more == 2 && length < 126 || more == 8 && length < 65_536 {
                return flawed(.longLengthForm)
            }
            let size = 6 + more
            guard rest.count >= size else { return outcome }
            if !isControl, length > UInt64(mostPayload) { return flawed(.frameTooLong) }
            let mask = rest[size - 4..<size]
            let payload = rest[size...].prefix(Int(clamping: length)).enumerated().map {
                $1 ^ mask[size - 4 + $0 % 4]
            }
            if isControl {
                guard payload.count == Int(length) else { return outcome }
                if opcode == 9 { outcome.ping = payload }
                if opcode == 8 {
                    if let flaw = closeFlaw(payload) { return flawed(flaw) }
                    outcome.close =
                        payload.isEmpty ? 1_005 : UInt16(payload[0]) << 8 | UInt16(payload[1])
                    outcome.rest = 0
                    return outcome
                }
            } else {
                continues = !isFinal
                outcome.data += payload
            }
            place += size + payload.count
            if payload.count < Int(length) {
                outcome.rest = 0
                return outcome
            }
        }
    }

    private static func closeFlaw(_ payload: [UInt8]) -> WebSocketFlaw? {
        if payload.isEmpty { return nil }
        if payload.count == 1 { return .closePayload }
        let code = Int(payload[0]) << 8 | Int(payload[1])
        let isKnown = [1_000, 1_001, 1_002, 1_003].contains(code) || (1_007...1_014).contains(code)
        guard isKnown || (3_000...4_999).contains(code) else { return .closePayload }
        let reason = Array(payload.dropFirst(2))
        // Repaired text differs from what came.
        return Array(String(decoding: reason, as: UTF8.self).utf8) == reason ? nil : .closeReason
    }
}

/// Reads bytes as a request for the upgrade, in all its parts.
private struct RequestRun {
    private enum Reading: Equatable {
        case request(UpgradeRequest)
        case flaw(WebSocketFlaw)
        case unfinished
    }

    let rules: WebSocketRules

    func check(_ stream: [UInt8], _ trace: ((String) -> Void)?) throws(CheckFailure) {
        let whole = read(stream, seen: 0)
        trace?("\(stream.count) bytes: \(whole)")
        // Byte by byte, and looking only at what is new.
        for count in 0...stream.count {
            let part = Array(stream.prefix(count))
            let found = read(part, seen: max(0, count - 1))
            try CheckFailure.unless(
                found == read(part, seen: 0), "\(count) bytes differ by what was seen: \(found)")
            guard found != .unfinished else { continue }
            try CheckFailure.unless(found == whole, "\(count) bytes are \(found), all \(whole)")
            break
        }
        switch whole {
        case .unfinished:
            try CheckFailure.unless(
                stream.count < UpgradeRequest.maximumSize, "\(stream.count) bytes are not enough")
        case .flaw(let flaw):
            guard case .response = flaw.answer else {
                throw CheckFailure("\(flaw) is no flaw of a request")
            }
        case .request(let request): try check(request, stream)
        }
    }

    /// What is accepted can be said in the usual form, with the same meaning.
    private func check(
        _ request: UpgradeRequest, _ stream: [UInt8]
    ) throws(CheckFailure) {
        let head = stream.prefix(request.size)
        try CheckFailure.unless(
            head.starts(with: "GET ".utf8) && head.suffix(4) == [0x0D, 0x0A, 0x0D, 0x0A]
                && request.key.count == 24,
            "\(request) of \(String(decoding: head, as: UTF8.self))")
        var (query, header) = ("", "")
        if let token = request.token {
            let text = String(decoding: token, as: UTF8.self)
            try CheckFailure.unless(
                rules.readsTokenInQuery || rules.readsTokenInHeader,
                "\(text) was read, and no token may be")
            try CheckFailure.unless(
                !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F },
                "\(token) is a token")
            if rules.readsTokenInQuery {
                query = "?access_token=\(text)"
            } else {
                header = "Authorization: Bearer \(text)\r\n"
            }
        }
        let usual = """
            GET /mqtt\(query) HTTP/1.1\r
            Host: a\r
            Connection: Upgrade\r
            Upgrade: websocket\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Key: \(String(decoding: request.key, as: UTF8.self))\r
            Sec-WebSocket-Protocol: \(request.subProtocol.rawValue)\r
            \(header)\r

            """
        guard case .request(let again) = read(Array(usual.utf8), seen: 0),
            again.key == request.key, again.subProtocol == request.subProtocol,
            again.token == request.token
        else { throw CheckFailure("\(request) is another one in its usual form") }
    }

    private func read(_ bytes: [UInt8], seen: Int) -> Reading {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { buffer.deallocate() }
        buffer.copyBytes(from: bytes)
        do throws(WebSocketFlaw) {
            let request = try UpgradeRequest.decode(
                UnsafeRawBufferPointer(buffer), rules: rules, read: seen)
            return request.map { .request($0) } ?? .unfinished
        } catch {
            return .flaw(error)
        }
    }
}
