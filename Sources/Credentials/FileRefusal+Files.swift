import SystemFiles

extension PasswordFileError: FileRefusal {
    package var isTransient: Bool {
        switch self {
        case .system(let failure): failure.isTransient
        case .locked: true
        case .missing, .notRegularFile, .tooLarge, .foreignLink, .malformed: false
        }
    }
}

extension TokenFileError: FileRefusal {
    package var isTransient: Bool {
        switch self {
        case .system(let failure): failure.isTransient
        case .locked: true
        case .missing, .notRegularFile, .tooLarge, .foreignLink, .foreignOwner, .writableByOthers,
            .malformed:
            false
        }
    }
}
