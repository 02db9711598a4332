package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkAll checks all samples and prints the result.
func (r *run) checkAll() error {
	served := r.targets.Stats()
	st := r.sink.Stats(false)
	p := r.sink.Prove(served.Scrapes)
	lost, met, refused, failed, forgiven := 0, 0, 0, 0, 0
	for _, address := range slices.Sorted(maps.Keys(served.Scrapes)) {
		batches, down := r.refusedBatches(address), r.failedScrapes(p.Down[address])
		var unexcused []int
		for n, sequences := range p.Missing[address] {
			if sequences+p.Forgiven[address][n] != p.Sequences[address] {
				r.addFailure("scrape %d of %s is there in part: %d of %d samples are missing", n, address, sequences, p.Sequences[address])
				lost += sequences
				continue
			}
			unexcused = append(unexcused, n)
		}
		for _, sequences := range p.Forgiven[address] {
			forgiven += sequences
		}
		slices.Sort(unexcused)
		byDeath, unexcused := r.metByDeaths(address, unexcused)
		samples := func(scrapes []int) (n int) {
			for _, s := range scrapes {
				n += p.Missing[address][s]
			}
			return n
		}
		met += samples(byDeath)
		if len(unexcused) > batches+down {
			lost += samples(unexcused)
			r.addFailure("scrapes %v of %s are missing; weir refused %d batches and failed %d scrapes", unexcused, address, batches, down)
			continue
		}
		batches = min(batches, len(unexcused))
		refused += samples(unexcused[:batches])
		failed += samples(unexcused[batches:])
	}
	if want := r.o.Targets * r.o.Series; st.Sequences != want {
		r.addFailure("%d sequences arrived, there are %d", st.Sequences, want)
		lost += want - st.Sequences
	}
	check := func(n int64, what string) {
		if n > 0 {
			r.addFailure("%d %s", n, what)
		}
	}
	lost = max(lost, p.Owed) // most of them are included
	check(int64(p.Owed), "samples were in the journal of a process that died, and did not arrive")
	check(st.Reordered, "numbers came late")
	check(st.Changed, "numbers came again with other timestamps")
	check(st.Invalid, "requests could not be read")
	r.printf("")
	for _, p := range r.problems {
		r.printf("WRONG: %s", p)
	}
	r.printf("%d samples of %d series arrived; %d came again, all with the same timestamps and values: %t", st.Samples-st.Duplicates, st.Sequences, st.Duplicates, st.Changed == 0)
	for _, d := range r.drains {
		r.printf("slow endpoint: %s", d)
	}
	r.printf("missing by right: %d samples that a death met before they were accepted, %d refused and logged, %d of scrapes that failed, %d in %d damaged blocks",
		met, refused, failed, forgiven, r.damaged)
	for _, why := range r.refusals() {
		r.printf("refused: %s", why)
	}
	r.printf("lost = %d", lost)
	if len(r.problems) > 0 {
		return fmt.Errorf("%w: %d findings with seed %d", ErrLost, len(r.problems), r.o.Seed)
	}
	return nil
}

// metByDeaths returns the missing scrapes that a death may have interrupted
// before they were accepted, and the remaining ones. There is at most one for
// each death: the last one that was answered or, if the system had already
// accepted another request, the following one.
func (r *run) metByDeaths(address string, missing []int) (met, others []int) {
	for _, d := range r.deaths {
		last := d[address]
		if i := slices.IndexFunc(missing, func(n int) bool { return n == last || n == last+1 }); i >= 0 {
			met = append(met, missing[i])
			missing = slices.Delete(missing, i, i+1)
		}
	}
	return met, missing
}

// refusedBatches returns the number of batches of a target that, according to
// weir's log, were refused until the next one was due.
func (r *run) refusedBatches(address string) (n int) {
	for _, out := range r.output {
		for line := range strings.Lines(out) {
			if strings.Contains(line, `msg="batch was dropped"`) && strings.Contains(line, address+"/metrics") {
				n++
			}
		}
	}
	return n
}

// refusals returns the errors with which batches were refused, each once.
func (r *run) refusals() (all []string) {
	for _, out := range r.output {
		for line := range strings.Lines(out) {
			if _, why, ok := strings.Cut(strings.TrimSpace(line), " err="); ok && strings.Contains(line, `msg="batch was dropped"`) && !slices.Contains(all, why) {
				all = append(all, why)
			}
		}
	}
	return all
}

// failedScrapes returns the number of scrapes that failed while the target was
// not frozen.
func (r *run) failedScrapes(down []int64) (n int) {
	for _, t := range down {
		if !slices.ContainsFunc(r.rest, func(s span) bool { return t >= s.from && t <= s.to }) {
			n++
		}
	}
	return n
}
