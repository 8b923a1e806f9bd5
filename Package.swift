// swift-tools-version: 6.3
import PackageDescription

/// The language habits of every Swift target.
let settings: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
]

/// A library target with a product of the same name, so that a user links only what it uses.
struct Module {
    var name: String
    var dependencies: [Target.Dependency]
}

let modules = [
    // The core: no C library.
    Module(name: "StenoAudio", dependencies: []),
    Module(name: "StenoConversion", dependencies: ["StenoAudio"]),
    Module(name: "StenoAnalysis", dependencies: ["StenoConversion", "StenoAudio"]),
    Module(name: "StenoTranscript", dependencies: ["StenoAnalysis", "StenoAudio"]),
    Module(name: "StenoTesting", dependencies: ["StenoAnalysis", "StenoConversion", "StenoAudio"]),
    // Back ends: one folder and one line each.
    Module(name: "StenoSoxr", dependencies: ["StenoConversion", "CSoxr"]),
    Module(name: "StenoSampleRate", dependencies: ["StenoConversion", "CSampleRate"]),
    Module(name: "StenoFiles", dependencies: ["StenoAudio", "CSndfile"]),
    Module(name: "StenoMedia", dependencies: ["StenoFiles", "StenoAudio", "CFFmpeg"]),
    Module(name: "StenoALSA", dependencies: ["StenoAudio", "CALSA"]),
    Module(name: "StenoPulseAudio", dependencies: ["StenoAudio", "CPulse"]),
    Module(name: "StenoWhisper", dependencies: ["StenoAnalysis", "StenoAudio", "CWhisper"]),
    Module(name: "StenoVosk", dependencies: ["StenoAnalysis", "StenoAudio"]),
    // Models: found, fetched and kept.
    Module(name: "StenoModels", dependencies: ["StenoAudio", "CCurl", "CArchive", "CCrypto"]),
    // The whole way put together.
    Module(
        name: "Steno",
        dependencies: [
            "StenoAudio", "StenoConversion", "StenoAnalysis", "StenoTranscript", "StenoSoxr", "StenoFiles",
        ]),
]

func test(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies + ["StenoTesting"], swiftSettings: settings)
}

let package = Package(
    name: "steno",
    products: modules.map { .library(name: $0.name, targets: [$0.name]) } + [
        .executable(name: "transcribe", targets: ["transcribe"]),
        .executable(name: "convert", targets: ["convert"]),
        .executable(name: "list-devices", targets: ["list-devices"]),
        .executable(name: "record", targets: ["record"]),
        .executable(name: "live-captions", targets: ["live-captions"]),
        .executable(name: "steno-bench", targets: ["steno-bench"]),
        .executable(name: "models", targets: ["models"]),
    ],
    targets: modules.map { .target(name: $0.name, dependencies: $0.dependencies, swiftSettings: settings) } + [
        .systemLibrary(name: "CSndfile", pkgConfig: "sndfile", providers: [.apt(["libsndfile1-dev"])]),
        // libavformat's pkg-config file names only itself; the module map links the others.
        .systemLibrary(
            name: "CFFmpeg", pkgConfig: "libavformat", providers: [.apt(["libavformat-dev", "libswresample-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CArchive", pkgConfig: "libarchive", providers: [.apt(["libarchive-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CSoxr", pkgConfig: "soxr", providers: [.apt(["libsoxr-dev"])]),
        .systemLibrary(name: "CSampleRate", pkgConfig: "samplerate", providers: [.apt(["libsamplerate0-dev"])]),
        .systemLibrary(name: "CALSA", pkgConfig: "alsa", providers: [.apt(["libasound2-dev"])]),
        // Its pkg-config file has flags that SwiftPM refuses with a warning; the module map links the library.
        .systemLibrary(name: "CPulse", providers: [.apt(["libpulse-dev"])]),
        .systemLibrary(name: "CWhisper", pkgConfig: "whisper"),

        .executableTarget(
            name: "transcribe",
            dependencies: ["Steno", "StenoMedia", "ExampleRecognizers", "ExampleSupport"],
            path: "Examples/transcribe",
            swiftSettings: settings),
        .executableTarget(
            name: "convert",
            dependencies: ["Steno", "ExampleSupport"],
            path: "Examples/convert",
            swiftSettings: settings),
        .executableTarget(
            name: "list-devices",
            dependencies: ["StenoALSA", "StenoPulseAudio", "StenoAudio", "ExampleSupport"],
            path: "Examples/list-devices",
            swiftSettings: settings),
        .executableTarget(
            name: "record",
            dependencies: ["Steno", "ExampleCapture", "ExampleSupport"],
            path: "Examples/record",
            swiftSettings: settings),
        .executableTarget(
            name: "live-captions",
            dependencies: ["Steno", "ExampleCapture", "ExampleRecognizers", "ExampleSupport"],
            path: "Examples/live-captions",
            swiftSettings: settings),
        .executableTarget(
            name: "models",
            dependencies: ["StenoModels", "ExampleSupport"],
            path: "Examples/models",
            swiftSettings: settings),
        // What the programs share.
        .target(
            name: "ExampleSupport", dependencies: ["Steno", "StenoVosk"], path: "Examples/Support",
            swiftSettings: settings),
        .target(
            name: "ExampleRecognizers",
            dependencies: ["Steno", "StenoWhisper", "StenoVosk", "ExampleSupport"],
            path: "Examples/Recognizers",
            swiftSettings: settings),
        .target(
            name: "ExampleCapture",
            dependencies: ["Steno", "StenoALSA", "StenoMedia", "StenoPulseAudio", "ExampleSupport"],
            path: "Examples/Capture",
            swiftSettings: settings),
        .executableTarget(
            name: "steno-bench",
            dependencies: [
                "Steno", "StenoWhisper", "StenoSampleRate", "StenoTesting", "CConversionReference", "ChildProcesses",
            ],
            path: "Benchmarks/steno-bench",
            swiftSettings: settings),
        .target(
            name: "CConversionReference",
            dependencies: ["CSoxr"],
            path: "Benchmarks/CConversionReference"),

        .target(name: "CAllocationCounter", path: "Tests/CAllocationCounter"),
        // What several targets of tests need.
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),
        .target(name: "ChildProcesses", path: "Tests/ChildProcesses", swiftSettings: settings),
        test("StenoAudioTests", ["StenoAudio"]),
        test("StenoCaptureTests", ["StenoAudio", "CAllocationCounter"]),
        .target(name: "PulseTestServer", path: "Tests/PulseTestServer", swiftSettings: settings),
        .target(name: "CALSAFaults", path: "Tests/CALSAFaults"),
        test("StenoALSATests", ["StenoALSA", "StenoAudio", "PulseTestServer", "CALSAFaults"]),
        test("StenoPulseAudioTests", ["StenoPulseAudio", "StenoAudio", "PulseTestServer"]),
        test("StenoConversionTests", ["StenoConversion", "StenoSoxr", "StenoSampleRate", "CAllocationCounter"]),
        test("StenoAnalysisTests", ["StenoAnalysis", "StenoSoxr", "CAllocationCounter"]),
        test("StenoTestingTests", ["StenoAnalysis"]),
        test("StenoTranscriptTests", ["StenoTranscript"]),
        test("StenoFilesTests", ["StenoFiles", "TestSupport"]),
        test("StenoMediaTests", ["StenoMedia", "StenoFiles", "CAllocationCounter", "TestSupport"]),
        test("StenoModelsTests", ["StenoModels", "ChildProcesses", "TestSupport", "models"]),
        test("StenoWhisperTests", ["StenoWhisper", "Steno"]),
        test("StenoVoskTests", ["StenoVosk", "Steno"]),
        test("StenoTests", ["Steno", "StenoMedia", "StenoWhisper", "StenoVosk", "CAllocationCounter", "TestSupport"]),
        test("TranscribeTests", ["Steno", "StenoWhisper", "ChildProcesses", "TestSupport"]),
        test(
            "ProgramTests",
            [
                "record", "live-captions", "list-devices", "convert", "Steno", "StenoMedia", "PulseTestServer",
                "TestSupport",
            ]),
    ],
    swiftLanguageModes: [.v6]
)
