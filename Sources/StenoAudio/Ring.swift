import Synchronization

/// A lock-free ring of audio frames in one format, between one writer and one reader.
///
/// Both counts only grow; their difference is what the ring holds, so no frame can be counted twice or lost.
///
/// `@unchecked Sendable`: `storage` is written by the one writing thread only in the part that `read` has released,
/// and read by the one reading side only in the part that `write` has published. The counts are the hand-over.
@safe final class AudioRing: @unchecked Sendable {
    let format: AudioFormat
    /// Frames for which there is room.
    let capacity: Int
    private let storage: UnsafeMutableRawPointer
    private let written = Atomic<Int>(0)
    private let consumed = Atomic<Int>(0)
    private var planeCount: Int { format.isInterleaved ? 1 : format.channelCount }

    init(format: AudioFormat, capacity: Int) {
        self.format = format
        self.capacity = capacity
        let byteCount = capacity * format.bytesPerFrame
        unsafe storage = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
        // Touching every page now keeps page faults off the capture thread.
        unsafe storage.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
    }

    deinit { unsafe storage.deallocate() }

    /// Frames ever written.
    var writtenCount: Int { written.load(ordering: .acquiring) }
    /// Frames ever read.
    var consumedCount: Int { consumed.load(ordering: .acquiring) }
    var room: Int { capacity - (writtenCount - consumedCount) }

    /// Writes as many of the buffer's first frames as there is room for, and returns how many. For the writer alone;
    /// neither allocates nor waits.
    func write(_ buffer: borrowing AudioBuffer) -> Int {
        let start = written.load(ordering: .relaxed)
        let count = min(buffer.frameCount, capacity - (start - consumed.load(ordering: .acquiring)))
        let bufferCapacity = buffer.frameCapacity
        unsafe buffer.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress else { return }
            forEachRun(from: start, count: count, otherCapacity: bufferCapacity) { ring, other, length in
                unsafe (storage + ring).copyMemory(from: source + other, byteCount: length)
            }
        }
        written.store(start + count, ordering: .releasing)
        return count
    }

    /// Replaces the content of `buffer` with the next frames: `limit`, or what fits. For the reader alone.
    func read(into buffer: inout AudioBuffer, limit: Int) -> Int {
        let start = consumed.load(ordering: .relaxed)
        let count = min(limit, buffer.frameCapacity, written.load(ordering: .acquiring) - start)
        let bufferCapacity = buffer.frameCapacity
        unsafe buffer.withUnsafeMutableBytes { bytes in
            guard let target = bytes.baseAddress else { return 0 }
            forEachRun(from: start, count: count, otherCapacity: bufferCapacity) { ring, other, length in
                unsafe (target + other).copyMemory(from: storage + ring, byteCount: length)
            }
            return count
        }
        consumed.store(start + count, ordering: .releasing)
        return count
    }

    /// Calls `body` with byte offsets in the ring and in a buffer, and a byte count: for each plane at most two runs,
    /// one up to the end of the ring and one from its start.
    private func forEachRun(
        from start: Int, count: Int, otherCapacity: Int, _ body: (_ ring: Int, _ other: Int, _ length: Int) -> Void
    ) {
        let frameBytes = format.bytesPerFrame / planeCount
        let offset = start % capacity
        let first = min(count, capacity - offset)
        for plane in 0..<planeCount {
            body((plane * capacity + offset) * frameBytes, plane * otherCapacity * frameBytes, first * frameBytes)
            if count > first {
                body(
                    plane * capacity * frameBytes, (plane * otherCapacity + first) * frameBytes,
                    (count - first) * frameBytes)
            }
        }
    }
}

/// A lock-free queue of fixed size between one writer and one reader.
///
/// `@unchecked Sendable`: a slot is touched by the one writing thread before `tail` passes it, and by the one reading
/// side before `head` does.
@safe final class BoundedQueue<Element: Sendable>: @unchecked Sendable {
    private let slots: UnsafeMutablePointer<Element?>
    private let capacity: Int
    private let tail = Atomic<Int>(0)
    private let head = Atomic<Int>(0)

    init(capacity: Int) {
        self.capacity = capacity
        unsafe slots = .allocate(capacity: capacity)
        unsafe slots.initialize(repeating: nil, count: capacity)
    }

    deinit {
        unsafe slots.deinitialize(count: capacity)
        unsafe slots.deallocate()
    }

    /// False when the queue is full. For the writer alone.
    func push(_ element: Element) -> Bool {
        guard hasRoom else { return false }
        let position = tail.load(ordering: .relaxed)
        unsafe slots[position % capacity] = element
        tail.store(position + 1, ordering: .releasing)
        return true
    }

    /// Whether ``push(_:)`` would succeed. For the writer alone.
    var hasRoom: Bool { tail.load(ordering: .relaxed) - head.load(ordering: .acquiring) < capacity }

    /// The oldest element, left in place. For the reader alone.
    func peek() -> Element? {
        let position = head.load(ordering: .relaxed)
        return position == tail.load(ordering: .acquiring) ? nil : unsafe slots[position % capacity]
    }

    /// Takes the oldest element off. For the reader alone, after ``peek()`` showed it.
    func removeFirst() {
        let position = head.load(ordering: .relaxed)
        unsafe slots[position % capacity] = nil
        head.store(position + 1, ordering: .releasing)
    }
}
