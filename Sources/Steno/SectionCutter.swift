import StenoAnalysis
import StenoAudio

/// Divides audio into sections that are recognized one by one, at places that follow from the audio alone: in the middle
/// of the quietest half second in the last tenth of a section.
struct SectionCutter {
    private let sampleRate: Int
    /// What a section has at most, and how much of its end is searched, in frames.
    private let length: Int64
    private let zone: Int64
    /// The first frame of the section; audio before it is left out.
    private var start: Int64
    /// The first frame of the next section, once it is known.
    private var cut: Int64?
    /// Audio that was not handed on, in order, with the frame at which each buffer starts.
    private var held: ArraySlice<(start: Int64, buffer: AudioBuffer)> = []
    private var end: Int64 = 0
    private var hasEnded = false

    enum Step {
        case input(AnalyzerInput)
        case needsInput
        case sectionEnd
    }

    /// - Parameters:
    ///   - duration: seconds; above zero.
    ///   - start: where the first section begins.
    init(sampleRate: Int, duration: Double, start: MediaTime) {
        self.sampleRate = sampleRate
        length = max(1, Int64(duration * Double(sampleRate)))
        zone = length / 10
        self.start = start.frames(at: sampleRate)
    }

    var startTime: MediaTime { MediaTime(frames: start, sampleRate: sampleRate) }

    /// Takes the next audio, or nil for its end.
    mutating func append(_ input: AnalyzerInput?) {
        guard let input else {
            hasEnded = true
            return
        }
        let first = input.bufferStartTime?.frames(at: sampleRate) ?? end
        end = first + Int64(input.buffer.frameCount)
        guard end > start else { return }
        let skipped = Int(max(0, start - first))
        held.append((first + Int64(skipped), skipped == 0 ? input.buffer : part(of: input.buffer, from: skipped)))
    }

    mutating func next() -> Step {
        if cut == nil, end >= start + length { cut = quietestFrame() }
        guard let first = held.first else { return hasEnded || cut != nil ? .sectionEnd : .needsInput }
        let firstEnd = first.start + Int64(first.buffer.frameCount)
        if let cut {
            guard first.start < cut else { return .sectionEnd }
            held.removeFirst()
            guard firstEnd > cut else { return step(first) }
            let count = Int(cut - first.start)
            held.insert((cut, part(of: first.buffer, from: count)), at: held.startIndex)
            return step((first.start, first.buffer.copy(frames: 0..<count)))
        }
        guard hasEnded || firstEnd <= start + length - zone else { return .needsInput }
        held.removeFirst()
        return step(first)
    }

    /// Goes on behind a section; false at the end of the audio.
    mutating func beginSection() -> Bool {
        guard let cut else { return false }
        start = cut
        self.cut = nil
        return true
    }

    private func step(_ piece: (start: Int64, buffer: AudioBuffer)) -> Step {
        let time = MediaTime(frames: piece.start, sampleRate: sampleRate)
        return .input(AnalyzerInput(buffer: piece.buffer, bufferStartTime: time))
    }

    private func part(of buffer: AudioBuffer, from first: Int) -> AudioBuffer {
        buffer.copy(frames: first..<buffer.frameCount)
    }

    /// Missing audio is as quiet as can be, and so is audio in a format that no recognizer takes.
    private func quietestFrame() -> Int64 {
        let zoneStart = start + length - zone
        let blockLength = Int64(max(1, sampleRate / 100))
        var energies = [Double](repeating: 0, count: Int(zone / blockLength))
        for (first, buffer) in held where !energies.isEmpty {
            func add(_ energy: (Int) -> Double) {
                for frame in 0..<buffer.frameCount {
                    let place = first + Int64(frame) - zoneStart
                    let block = Int(place / blockLength)
                    if place >= 0, block < energies.count { energies[block] += energy(frame) }
                }
            }
            let channels = buffer.format.isInterleaved ? buffer.format.channelCount : 1
            switch buffer.format.sampleFormat {
            case .float32:
                buffer.withSamples(of: Float.self) { samples in
                    add { Double(samples[$0 * channels] * samples[$0 * channels]) }
                }
            case .int16:
                buffer.withSamples(of: Int16.self) { samples in
                    add { Double(Int32(samples[$0 * channels]) * Int32(samples[$0 * channels])) }
                }
            default: break
            }
        }
        let width = min(50, energies.count)
        let sums = (0...energies.count - width).map { energies[$0..<$0 + width].reduce(0, +) }
        let quietest = sums.indices.min { sums[$0] < sums[$1] } ?? 0
        return max(start + 1, zoneStart + Int64(quietest) * blockLength + Int64(width) * blockLength / 2)
    }
}
