package main

import (
	"github.com/spf13/pflag"

	"github.com/weir-run/weir/cmd/weirbench/target"
)

// loadFlags adds the flags for the scraped load. o contains the defaults.
func loadFlags(f *pflag.FlagSet, o *target.Options) {
	f.IntVar(&o.Targets, "targets", o.Targets, "number of targets")
	f.IntVar(&o.Series, "series", o.Series, "series of each target")
	f.IntVar(&o.Sequences, "sequences", o.Sequences, "of those, series that count the scrapes")
	f.StringVar((*string)(&o.Format), "format", string(o.Format), "text or openmetrics, for every scraper")
	f.StringVar((*string)(&o.Gzip), "gzip", string(o.Gzip), "compress bodies: off, accept (if the scraper accepts it) or always")
	f.Float64Var(&o.Churn, "churn", o.Churn, "part of the series that is renamed at each scrape, 0 to 1")
}

func untilEOFFlag(f *pflag.FlagSet, v *bool) {
	f.BoolVar(v, "until-eof", false, "say where it is as a line of JSON, and end with the standard input")
	_ = f.MarkHidden("until-eof") // fails only if the flag does not exist
}
