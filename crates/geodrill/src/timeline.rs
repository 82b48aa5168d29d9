//! What happened when, in a bounded number of buckets, however long the drill.

/// Widths of a bucket in milliseconds. Each is a multiple of the one before, so that buckets can
/// be joined, and each is a number that people read well.
const WIDTHS: [u64; 17] = [
    1,
    2,
    10,
    20,
    100,
    200,
    1_000,
    2_000,
    10_000,
    20_000,
    60_000,
    120_000,
    600_000,
    1_200_000,
    3_600_000,
    86_400_000,
    864_000_000,
];

/// Buckets kept while a drill runs; when time runs past them they are joined.
const MOST: u64 = 480;

/// Counters per service and bucket.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    width_ms: u64,
    services: Vec<Vec<Bucket>>,
}

/// What happened to one service in one bucket of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bucket {
    /// By region; shorter than the list of regions where nothing happened in the later ones.
    pub(crate) regions: Vec<RegionBucket>,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) cancelled: u64,
    /// Of operations that got an answer or failed, in milliseconds.
    pub(crate) latency_sum: u64,
    pub(crate) latency_max: u64,
}

/// What happened in one region.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RegionBucket {
    /// Sends with a good answer, by the time they left.
    pub(crate) good: u64,
    /// Sends with a bad answer or none, by the time they left.
    pub(crate) bad: u64,
    /// Operations that this region's answer ended, by the time of the answer.
    pub(crate) served: u64,
    /// Those of them that were writes, where reads and writes may go to different regions.
    pub(crate) wrote: u64,
}

impl Bucket {
    pub(crate) fn region(&mut self, index: usize) -> &mut RegionBucket {
        if self.regions.len() <= index {
            self.regions.resize(index + 1, RegionBucket::default());
        }
        &mut self.regions[index]
    }

    /// The mean latency in milliseconds, where an operation got an answer or failed.
    pub(crate) fn latency_mean(&self) -> Option<u64> {
        self.latency_sum.checked_div(self.succeeded + self.failed)
    }

    fn join(&mut self, other: Self) {
        for (index, region) in other.regions.into_iter().enumerate() {
            let mine = self.region(index);
            mine.good += region.good;
            mine.bad += region.bad;
            mine.served += region.served;
            mine.wrote += region.wrote;
        }
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.refused += other.refused;
        self.cancelled += other.cancelled;
        self.latency_sum += other.latency_sum;
        self.latency_max = self.latency_max.max(other.latency_max);
    }
}

impl Timeline {
    pub(crate) fn new(services: usize) -> Self {
        Self {
            width_ms: WIDTHS[0],
            services: vec![Vec::new(); services],
        }
    }

    /// The width of a bucket in milliseconds.
    pub(crate) const fn width_ms(&self) -> u64 {
        self.width_ms
    }

    /// The buckets of a service, from time 0; what comes after the last one is empty.
    pub(crate) fn service(&self, index: usize) -> &[Bucket] {
        self.services.get(index).map_or(&[], Vec::as_slice)
    }

    /// The number of buckets of the service that went on longest.
    pub(crate) fn len(&self) -> usize {
        self.services.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The bucket of an instant.
    pub(crate) fn at(&mut self, service: usize, at_ms: u64) -> &mut Bucket {
        while at_ms / self.width_ms >= MOST {
            // Past the last width the table just goes on by tens.
            let next = WIDTHS.into_iter().find(|width| *width > self.width_ms);
            let factor = next.map_or(10, |next| next / self.width_ms);
            self.join(usize::try_from(factor).unwrap_or(10));
        }
        // Below MOST after the loop.
        let index = usize::try_from(at_ms / self.width_ms).unwrap_or(usize::MAX);
        let buckets = &mut self.services[service];
        if buckets.len() <= index {
            buckets.resize_with(index + 1, Bucket::default);
        }
        &mut buckets[index]
    }

    /// The same with at most so many buckets, each a small multiple of the present width.
    pub(crate) fn within(&self, most: usize) -> Self {
        const MULTIPLES: [usize; 10] = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20];
        let wanted = self.len().div_ceil(most.max(1));
        let multiple = MULTIPLES
            .into_iter()
            .find(|multiple| *multiple >= wanted)
            .unwrap_or(wanted);
        let mut copy = self.clone();
        copy.join(multiple);
        copy
    }

    /// Joins so many buckets into one.
    fn join(&mut self, multiple: usize) {
        self.width_ms *= multiple as u64;
        for buckets in &mut self.services {
            let mut wide: Vec<Bucket> = Vec::with_capacity(buckets.len().div_ceil(multiple));
            for (index, bucket) in buckets.drain(..).enumerate() {
                if index % multiple == 0 {
                    wide.push(bucket);
                } else if let Some(last) = wide.last_mut() {
                    last.join(bucket);
                }
            }
            *buckets = wide;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_can_be_joined() {
        assert!(WIDTHS.windows(2).all(|pair| pair[1] % pair[0] == 0));
    }

    #[test]
    fn joining_buckets_loses_nothing() {
        let mut timeline = Timeline::new(1);
        for at in 0..7_200_u64 {
            let bucket = timeline.at(0, at * 1_000);
            bucket.succeeded += 1;
            bucket.region(usize::from(at > 3_600)).good += 1;
            bucket.latency_max = bucket.latency_max.max(at);
        }
        assert_eq!(timeline.width_ms(), 20_000);
        assert_eq!(timeline.len(), 360);
        let narrow = timeline.within(72);
        assert_eq!((narrow.width_ms(), narrow.len()), (100_000, 72));
        let all: u64 = narrow
            .service(0)
            .iter()
            .map(|bucket| bucket.succeeded)
            .sum();
        assert_eq!(all, 7_200);
        let sends: u64 = narrow
            .service(0)
            .iter()
            .flat_map(|bucket| &bucket.regions)
            .map(|region| region.good)
            .sum();
        assert_eq!(sends, 7_200);
        assert_eq!(narrow.service(0)[71].latency_max, 7_199);
    }
}
