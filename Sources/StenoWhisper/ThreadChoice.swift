/// How many threads a live decode takes: one less than there are processors, or all, whichever its own decodes show to
/// be faster now.
///
/// With as many threads as processors, a decode waits for the slowest of them at every step: alone it is fastest, beside
/// another busy process it takes many times as long. So all are tried now and then, more seldom after each failure.
struct ThreadChoice {
    private let few: Int
    private let all: Int
    private var usesAll = false
    /// Seconds for one unit of work, smoothed: with few threads and with all.
    private var (costOfFew, costOfAll): (Double?, Double?) = (nil, nil)
    /// Decodes until all threads are tried again, and how many that will be after the next failure.
    private var (wait, pause) = (2, 8)

    init(fixed: Int?, processors: Int) {
        all = fixed ?? processors
        few = fixed ?? max(1, processors - 1)
    }

    var count: Int { usesAll ? all : few }

    /// - Parameter cost: Seconds that a decode took for one unit of its work.
    mutating func note(cost: Double) {
        guard few < all else { return }
        func smooth(_ old: Double?) -> Double { old.map { ($0 + cost) / 2 } ?? cost }
        if usesAll {
            costOfAll = smooth(costOfAll)
            guard let few = costOfFew, let all = costOfAll, cost > few || all > few else { return }
            (usesAll, costOfAll, wait) = (false, nil, pause)
            pause = min(2 * pause, 256)
        } else {
            costOfFew = smooth(costOfFew)
            wait -= 1
            if wait <= 0 { usesAll = true }
        }
    }
}
