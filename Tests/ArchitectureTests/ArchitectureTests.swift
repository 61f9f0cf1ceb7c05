import Testing

@Suite("Modules and their arrows")
struct ArchitectureTests {
    @Test("every folder under Sources has one row, and every row a folder")
    func rows() throws {
        let folders = try Repository.names(in: "Sources")
        let rows = ModuleRow.all.map(\.folder)
        #expect(folders == rows.sorted(), "ModuleTable.swift and the folders under Sources differ")
    }

    @Test("rows name only rows above them, so there is no cycle")
    func noCycle() {
        var above: Set<String> = []
        for row in ModuleRow.all {
            let unknown = row.own.subtracting(above).sorted()
            #expect(unknown.isEmpty, "the row \(row.folder) names \(unknown), not above it")
            above.insert(row.module)
        }
        for row in ModuleRow.all {
            #expect(row.outside.isDisjoint(with: above), "\(row.folder): own modules as outside")
        }
    }

    @Test("a module imports exactly the modules of its row", arguments: ModuleRow.all)
    func imports(row: ModuleRow) throws {
        let allowed = row.own.union(row.outside)
        var unused = allowed
        for file in try Repository.files(in: "Sources/\(row.folder)", suffix: ".swift") {
            for (module, line) in file.imports {
                unused.remove(module)
                #expect(
                    allowed.contains(module),
                    "\(file.path):\(line) imports \(module); its row allows \(allowed.sorted())")
            }
        }
        #expect(unused.isEmpty, "the row \(row.folder) names \(unused.sorted()), never imported")
    }

    @Test("sockets and protocol meet only where they are joined")
    func socketsAndProtocol() {
        let joining = ModuleRow.all.filter {
            !$0.own.isDisjoint(with: ModuleRow.sockets)
                && !$0.own.isDisjoint(with: ModuleRow.protocol)
        }
        #expect(Set(joining.map(\.folder)) == ModuleRow.joinSocketsAndProtocol)
    }

    /// These packages compile the modules as links, with manifests of their own.
    @Test(
        "a nested package gives each module what its row names", arguments: ["Benchmarks", "Fuzz"])
    func nestedPackages(package: String) throws {
        let manifest = try Repository.file("\(package)/Package.swift").lines.joined(separator: " ")
        // Each target begins with its name, and the others that it names follow.
        let pattern =
            #/
            (?:module|[tT]arget)\(\s*(?:name:\s)?"(\w+)"
            (.*?)(?=module\(|[tT]arget\(|$)
            /#
        var targets: [String: Substring] = [:]
        for match in manifest.matches(of: pattern) { targets[String(match.1)] = match.2 }
        var checked = 0
        for row in ModuleRow.all where Repository.exists("\(package)/Sources/\(row.folder)") {
            guard let dependencies = targets[row.module] else { continue }
            checked += 1
            for module in row.own.sorted() {
                #expect(
                    dependencies.contains("\"\(module)\""),
                    "\(package)/Package.swift: \(row.module) imports \(module)")
                let folder = ModuleRow.all.first { $0.module == module }?.folder ?? module
                #expect(
                    Repository.exists("\(package)/Sources/\(folder)"),
                    "\(package)/Sources has no link to \(folder), which \(row.module) imports")
            }
        }
        #expect(checked > 5, "the scan of the manifest found too little")
    }

    /// scripts/test compiles the targets of these packages by the broker's manifest.
    @Test(
        "a nested package's own manifest gives each target what the broker's does",
        arguments: ["Benchmarks", "Client"])
    func nestedTargets(package: String) throws {
        let ours = try targets(of: "Package.swift")
        let nested = try targets(of: "\(package)/Package.swift")
        #expect(nested.count > 8, "the scan of the manifest found too little")
        for (name, named) in nested {
            // What only Apple's systems compile is not compiled here, and what only they take along
            // is left out.
            let expected = named.subtracting(["NIOTransportServices"])
            #expect(
                ours[name]?.subtracting(["PrivacyInfo.xcprivacy"]) == expected,
                "\(name) has \(expected.sorted()) in \(package)/Package.swift")
        }
    }

    /// No build of CI runs that script.
    @Test("the manifest of scripts/simulate-client gives each target what the broker's does")
    func simulationTargets() throws {
        let ours = try targets(of: "Package.swift")
        let written = try targets(of: "scripts/simulate-client")
            .filter { ours[$0.key]?.isDisjoint(with: ["-O2", "sqlite3"]) != false }
        #expect(written.count > 14, "the scan of the manifest found too little")
        for (name, named) in written {
            let expected = try #require(ours[name], "Package.swift has no \(name)")
            #expect(expected.isSubset(of: named), "\(name) has \(expected.sorted()) there")
        }
    }

    /// The targets of a manifest, each with what it names: above all its dependencies.
    private func targets(of manifest: String) throws -> [String: Set<String>] {
        let text = try Repository.file(manifest).lines.joined(separator: " ")
        let begins = text.matches(
            of:
                #/
            (?:module|program|tests|testSupport|[tT]arget|systemLibrary)
            \(\s*(?:name:\s)?"([\w\-]+)"
            /#)
        var targets: [String: Set<String>] = [:]
        for (number, begin) in begins.enumerated() {
            let end =
                number + 1 < begins.count ? begins[number + 1].range.lowerBound : text.endIndex
            let names = text[begin.range.upperBound..<end].matches(
                of: #/(?<label>package:\ |path:\ |)"(?<name>[^"]+)"/#)
            targets[String(begin.1)] = Set(
                names.filter { $0.label.isEmpty }.map { String($0.name) })
        }
        return targets
    }

    @Test("no file is over the limit", arguments: ModuleRow.foldersOfShortFiles)
    func shortFiles(folder: String) throws {
        let files = try Repository.files(in: folder, suffix: ".swift")
        #expect(!files.isEmpty, "\(folder) has no sources")
        for file in files {
            #expect(file.lineCount <= ModuleRow.mostLines, "\(file.path)")
        }
    }

    @Test("no two modules declare a type of one name")
    func typeNames() throws {
        var places: [String: [String: String]] = [:]
        for row in ModuleRow.all {
            for file in try Repository.files(in: "Sources/\(row.folder)", suffix: ".swift") {
                for (name, line) in file.types {
                    places[name, default: [:]][row.module] = "\(file.path):\(line)"
                }
            }
        }
        #expect(places.count > 300, "the scan of the sources found too little")
        for (name, places) in places where places.count > 1 {
            Issue.record("\(name) is declared in \(places.values.sorted())")
        }
    }

    @Test("the scan reads imports and types in all their forms")
    func scan() {
        let file = SourceFile(
            path: "a.swift",
            text: """
                import Glibc
                @preconcurrency import NIOCore  // words
                @_spi(Testing) package import struct Store.Record
                // import Nothing
                /// Words about what they import from others.
                package struct First: ~Copyable {
                    struct Inner {}
                }
                final class Second {}
                @available(*, deprecated) private enum Third {}
                indirect enum Fourth {}
                extension Fifth {}
                """)
        #expect(file.imports.map(\.module) == ["Glibc", "NIOCore", "Store"])
        #expect(file.imports.map(\.line) == [1, 2, 3])
        #expect(file.types.map(\.name) == ["First", "Second", "Third", "Fourth"])
        #expect(file.lineCount == 12)
    }
}
