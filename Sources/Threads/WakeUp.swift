import Glibc

/// Adds to an eventfd, by which a sleeping thread wakes up, even if a signal interrupts the call: a
/// wake-up that is lost lets the thread sleep beside its tasks.
func wakeUp(_ descriptor: CInt, adding count: Int = 1) {
    var count = UInt64(count)
    while Glibc.write(descriptor, &count, 8) < 0, errno == EINTR {}
}
