// Package bench measures collectors: what CPU time and memory a process needs
// to bring samples from targets to a remote write endpoint. It knows collectors
// by folders of templates, weir among them, and treats all alike.
//
// In the order of work. FindCollector reads a folder and finds the program.
// Measure is one round: it starts a sink and targets as processes of their own,
// then the collector, waits for samples of every target and the warm-up, and
// reads the meters of the operating system at both ends of the measured time:
// CPU time of the process, user and system, and the highest resident memory
// since its start. Then the targets show nothing any more, and the round is
// good when the sink has each scrape of each target, whole, once and in order.
// Report makes a table of rounds.
//
// The rules to know. Only samples of targets count, not those that a collector
// makes itself, such as up. Collectors run with their defaults, one after the
// other, in turn. It measures what a collector uses, not how it does under
// pressure; a collector that leaves scrapes out is told on.
package bench
