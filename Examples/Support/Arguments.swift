/// Reads a command line: `--name value` and `--name=value`, and what is no option. `--` ends the options.
package struct ArgumentReader {
    package struct UsageError: Error {
        package var message: String
        package init(_ message: String) { self.message = message }
    }

    package enum Argument {
        case option(String)
        case operand(String)
    }

    private var rest: ArraySlice<String>
    private var endOfOptions = false
    /// The option that was read last, and what stood behind its `=`.
    private var name = ""
    private var attached: String?

    /// - Parameter arguments: Without the name of the program.
    package init(_ arguments: [String]) { rest = arguments[...] }

    package mutating func next() throws(UsageError) -> Argument? {
        if attached != nil { throw UsageError("\(name) takes no value") }
        guard let argument = rest.popFirst() else { return nil }
        guard !endOfOptions, argument.hasPrefix("-"), argument != "-" else { return .operand(argument) }
        if argument == "--" {
            endOfOptions = true
            return try next()
        }
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        name = parts[0]
        attached = parts.count == 2 ? parts[1] : nil
        return .option(name)
    }

    /// The value of the option that was read last.
    package mutating func value() throws(UsageError) -> String {
        defer { attached = nil }
        guard let value = attached ?? rest.popFirst() else { throw UsageError("\(name) needs a value") }
        return value
    }

    /// The value as a number above zero.
    package mutating func number() throws(UsageError) -> Double {
        let text = try value()
        guard let number = Double(text), number > 0, number.isFinite else {
            throw UsageError("\(name) takes a number above 0, not \(text)")
        }
        return number
    }

    /// The value as one of some names.
    package mutating func choice<Choice: RawRepresentable & CaseIterable>() throws(UsageError) -> Choice
    where Choice.RawValue == String {
        let text = try value()
        guard let choice = Choice(rawValue: text) else {
            let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError("\(name): \(text) is not one of \(names)")
        }
        return choice
    }

    package var unknownOption: UsageError { UsageError("there is no option \(name)") }
}
