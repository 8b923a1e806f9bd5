// What most users import: the core, the soxr resampler and the file back end, put together.
@_exported public import StenoAnalysis
@_exported public import StenoAudio
@_exported public import StenoConversion
@_exported public import StenoFiles
@_exported public import StenoSoxr
@_exported public import StenoTranscript
