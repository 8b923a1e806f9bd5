package import Foundation

/// The checkout.
package let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized

/// A temporary folder, removed with its last reference.
package final class Folder: Sendable {
    package let url = FileManager.default.temporaryDirectory.appending(path: "steno-\(UUID())")

    package init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: url) }

    package func path(_ name: String) -> String { url.path(percentEncoded: false) + "/" + name }

    /// Returns the file's path.
    @discardableResult
    package func write(_ bytes: some Sequence<UInt8>, _ name: String) throws -> String {
        try Data(bytes).write(to: URL(filePath: path(name)))
        return path(name)
    }
}

package func contents(of path: String) throws -> [UInt8] { try [UInt8](Data(contentsOf: URL(filePath: path))) }

package struct ToolFailed: Error {
    var command: [String]
    var status: Int32
}

/// Runs a program found in PATH and returns what it printed.
@discardableResult
package func tool(_ command: [String]) throws -> String {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw ToolFailed(command: command, status: process.terminationStatus) }
    return String(decoding: output, as: UTF8.self)
}

@discardableResult
package func tool(_ command: String...) throws -> String { try tool(command) }

/// A program whose output is read as it comes.
package final class PipedProcess {
    private let process = Process()
    private let pipe = Pipe()
    package var descriptor: Int32 { pipe.fileHandleForReading.fileDescriptor }

    package init(_ command: [String]) throws {
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        process.standardOutput = pipe
        process.standardInput = FileHandle.nullDevice
        try process.run()
    }

    deinit {
        try? pipe.fileHandleForReading.close()
        process.waitUntilExit()
    }
}
