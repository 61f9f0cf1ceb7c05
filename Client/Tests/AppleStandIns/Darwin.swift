@_exported import Glibc

public var F_FULLFSYNC: Int32 { 51 }
