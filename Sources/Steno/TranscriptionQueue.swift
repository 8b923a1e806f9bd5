import Foundation
public import StenoAudio
public import StenoTranscript

/// Transcribes stored recordings in the order in which they were added, so many at a time, each with a status that a user
/// interface can show in its place.
///
///     let queue = TranscriptionQueue()
///     let transcription = FileTranscription(path: "memo.wav") { () throws(StenoError) in
///         try WhisperTranscriber(model: model)
///     }
///     let id = await queue.add(transcription, to: "memo.json")
///     for await status in await queue.statuses(of: id) { show(status) }
///
/// A queue goes on until all its jobs have ended.
///
/// The text appears whole, and replaces what was there only then: to transcribe a recording again, with another model or
/// language, add it again with the same path. Jobs with the same path run one after the other.
public actor TranscriptionQueue {
    public struct ID: Hashable, Sendable {
        fileprivate let number: Int
    }

    public enum Status: Sendable {
        case waiting
        /// Everything up to `through` is transcribed; `total` is nil where the source does not say how long it is.
        case running(through: MediaTime, total: MediaTime?)
        /// The text is in its file.
        case done
        /// What was there before the job is still there.
        case failed(StenoError)
        case cancelled

        public var isEnd: Bool {
            switch self {
            case .waiting, .running: false
            case .done, .failed, .cancelled: true
            }
        }
    }

    private struct Job {
        let transcription: FileTranscription
        let path: String
        let format: TranscriptFormat
        var status = Status.waiting
        var task: Task<Void, Never>?
        var isRemoved = false
        var observers: [UUID: AsyncStream<Status>.Continuation] = [:]
    }

    private let executor = BlockingExecutor(label: "steno.transcriptions")
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    private let jobsAtOnce: Int
    private var jobs: [ID: Job] = [:]
    /// Those that wait, in order.
    private var waiting: [ID] = []
    private var count = 0

    /// - Parameter jobsAtOnce: at least 1. A job is as fast as its threads; more jobs need more memory.
    public init(jobsAtOnce: Int = 1) { self.jobsAtOnce = max(1, jobsAtOnce) }

    /// Adds a job behind those that wait.
    ///
    /// - Parameters:
    ///   - transcription: one that makes its transcribers itself, so that it can run again. Its checkpoint is deleted when
    ///     the text is in its file.
    ///   - path: where the text goes, in a folder that is there.
    @discardableResult
    public func add(_ transcription: FileTranscription, to path: String, format: TranscriptFormat = .json) -> ID {
        count += 1
        let id = ID(number: count)
        jobs[id] = Job(transcription: transcription, path: path, format: format)
        waiting.append(id)
        startNext()
        return id
    }

    /// Nil when it was removed.
    public func status(of id: ID) -> Status? { jobs[id].flatMap { $0.isRemoved ? nil : $0.status } }

    /// The status now and each later one, without those that a slow reader missed, to the end of the job or its removal.
    public func statuses(of id: ID) -> AsyncStream<Status> {
        let (stream, continuation) = AsyncStream.makeStream(of: Status.self, bufferingPolicy: .bufferingNewest(1))
        guard let status = status(of: id) else {
            continuation.finish()
            return stream
        }
        continuation.yield(status)
        if status.isEnd {
            continuation.finish()
        } else {
            let observer = UUID()
            jobs[id]?.observers[observer] = continuation
            continuation.onTermination = { [weak self] _ in Task { await self?.forget(observer, of: id) } }
        }
        return stream
    }

    /// Ends a job that waits or runs. One that runs is `cancelled` a little later.
    public func cancel(_ id: ID) {
        guard let job = jobs[id], !job.status.isEnd else { return }
        if let task = job.task { return task.cancel() }
        waiting.removeAll { $0 == id }
        set(.cancelled, of: id)
    }

    /// Lets a job that has ended wait for its turn once more.
    public func retry(_ id: ID) {
        guard jobs[id]?.status.isEnd == true else { return }
        set(.waiting, of: id)
        waiting.append(id)
        startNext()
    }

    /// Cancels and forgets a job; its text, if there is one, stays.
    public func remove(_ id: ID) {
        cancel(id)
        // One that still runs counts until it has ended.
        if jobs[id]?.task == nil { jobs[id] = nil } else { jobs[id]?.isRemoved = true }
    }

    private func forget(_ observer: UUID, of id: ID) { jobs[id]?.observers[observer] = nil }

    private func startNext() {
        var running = jobs.values.filter { $0.task != nil }.map(\.path)
        for id in waiting where running.count < jobsAtOnce {
            guard let job = jobs[id], !running.contains(job.path) else { continue }
            running.append(job.path)
            waiting.removeAll { $0 == id }
            set(.running(through: .zero, total: nil), of: id)
            jobs[id]?.task = Task { ended(id, await run(job, id)) }
        }
    }

    private func run(_ job: Job, _ id: ID) async -> Status {
        do throws(StenoError) {
            let transcript = try await job.transcription.run { update in
                guard case .progress(let through, let total) = update else { return }
                set(.running(through: through, total: total), of: id)
            }
            var writer = job.format.makeWriter()
            if Task.isCancelled { return .cancelled }
            try replaceFile(at: job.path, with: Data(writer.write(transcript).utf8))
            job.transcription.checkpoint?.remove()
            return .done
        } catch {
            return error.code == .cancelled ? .cancelled : .failed(error)
        }
    }

    private func ended(_ id: ID, _ status: Status) {
        jobs[id]?.task = nil
        set(status, of: id)
        if jobs[id]?.isRemoved == true { jobs[id] = nil }
        startNext()
    }

    private func set(_ status: Status, of id: ID) {
        guard let observers = jobs[id]?.observers.values else { return }
        jobs[id]?.status = status
        for observer in observers {
            observer.yield(status)
            if status.isEnd { observer.finish() }
        }
    }
}
