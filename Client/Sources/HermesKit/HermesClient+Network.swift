#if canImport(Network)
    import HermesClientNIO

    extension HermesClient {
        /// Follows the device's network from now on, in place of calls of ``networkChanged(to:)``,
        /// until the client ends. A second call does nothing.
        public func followNetwork() {
            pathWatch.withLockedValue { watch in
                guard watch == nil else { return }
                watch = PathWatch { [weak self] label in self?.networkChanged(to: label) }
            }
        }
    }
#endif
