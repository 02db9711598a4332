package target

import "time"

// pace counts how often a target was scraped late: one and a half intervals after
// the previous scrape, or later. Missing scrapes count by the intervals that
// passed.
type pace struct {
	last  time.Time // zero before the first scrape
	count int64
}

// recordScrape records a scrape.
func (p *pace) recordScrape(now time.Time, interval time.Duration) {
	p.count = p.countLate(now, interval)
	p.last = now
}

// countLate returns the number of late scrapes so far.
func (p *pace) countLate(now time.Time, interval time.Duration) int64 {
	if p.last.IsZero() || interval <= 0 {
		return p.count
	}
	return p.count + max(0, int64((now.Sub(p.last)+interval/2)/interval)-1)
}
