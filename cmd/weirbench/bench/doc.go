// Package bench measures collectors: the CPU time and memory that a process needs
// to send samples from targets to a remote write endpoint. Collectors are defined
// by folders of templates. weir is one of them, and all are treated alike.
//
// A measurement has the following steps. FindCollector reads a folder and finds
// the program. Measure performs one round: it starts a sink and targets as
// separate processes, then the collector, waits for samples of every target and
// for the warm-up, and reads the values of the operating system at the beginning
// and at the end of the measured time: CPU time of the process, user and system,
// and peak resident memory since its start. Then the targets serve nothing more,
// and the round is good if the sink has each scrape of each target, complete,
// once and in order. Report creates a table of rounds.
//
// Only samples of targets count, not those that a collector adds, such as up.
// Collectors run with their defaults, one after the other, in turn. The benchmark
// measures the resources of a collector, not its behaviour under overload; if a
// collector skips scrapes, this is reported.
package bench
