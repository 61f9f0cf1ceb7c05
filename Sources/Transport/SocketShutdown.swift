import Glibc

/// shutdown(2) of a socket, whose errors mean that the peer has ended it already.
///
/// The constants are looked up here alone: the compiler does not find them in every file of an
/// optimised module.
enum SocketShutdown {
    /// Nothing more is read; of a listening socket, no connection is taken.
    static func ofReading(_ socket: CInt) { _ = shutdown(socket, CInt(SHUT_RD)) }

    /// Nothing more is sent; what the kernel has is.
    static func ofSending(_ socket: CInt) { _ = shutdown(socket, CInt(SHUT_WR)) }

    static func ofBoth(_ socket: CInt) { _ = shutdown(socket, CInt(SHUT_RDWR)) }
}
