package batch

import "slices"

// JoinLogs concatenates the rows of batches into one batch with the given
// source and way, and with one Ack for all of them. It returns the batch itself
// if there is only one, and nil if there is none.
func JoinLogs(source, way uint64, bs []*Logs) *Logs {
	switch len(bs) {
	case 0:
		return nil
	case 1:
		return bs[0]
	}
	rows, meta := 0, false
	for _, b := range bs {
		rows += b.Len()
		meta = meta || b.Meta != nil
	}
	out := &Logs{Source: source, Way: way, Stream: make([]*Stream, 0, rows), T: make([]int64, 0, rows), Line: make([]string, 0, rows)}
	if !slices.ContainsFunc(bs, func(b *Logs) bool { return b.Ack != bs[0].Ack }) {
		out.Ack = bs[0].Ack
	}
	if meta {
		out.Meta = make([][]Label, 0, rows)
	}
	for _, b := range bs {
		out.Stream, out.T, out.Line = append(out.Stream, b.Stream...), append(out.T, b.T...), append(out.Line, b.Line...)
		switch {
		case b.Meta != nil:
			out.Meta = append(out.Meta, b.Meta...)
		case meta:
			out.Meta = append(out.Meta, make([][]Label, b.Len())...)
		}
	}
	return out
}

// JoinMetrics concatenates the rows of batches into one batch with the Origin
// of the first. It returns the batch itself if there is only one, and nil if
// there is none.
func JoinMetrics(bs []*Metrics) *Metrics {
	switch len(bs) {
	case 0:
		return nil
	case 1:
		return bs[0]
	}
	return JoinColumns(bs[0].Origin(), JoinSeries(bs), bs)
}

// JoinSeries concatenates the series of batches.
func JoinSeries(bs []*Metrics) []*Series {
	rows := 0
	for _, b := range bs {
		rows += b.Len()
	}
	series := make([]*Series, 0, rows)
	for _, b := range bs {
		series = append(series, b.Series...)
	}
	return series
}

// JoinColumns concatenates the rows of batches into one batch with the given
// Origin. series is the result of JoinSeries for them. A caller that joins the
// same series again can pass the same slice again.
func JoinColumns(of Origin, series []*Series, bs []*Metrics) *Metrics {
	rows := len(series)
	out := &Metrics{Source: of.Source, Way: of.Way, Series: series, T: make([]int64, 0, rows), V: make([]float64, 0, rows)}
	for _, b := range bs {
		out.appendRest(b)
	}
	return out
}

// appendRest appends all columns of o except the series to b.
func (b *Metrics) appendRest(o *Metrics) {
	at := len(b.T)
	b.T, b.V = append(b.T, o.T...), append(b.V, o.V...)
	for _, h := range o.Histograms {
		h.Row += at
		b.Histograms = append(b.Histograms, h)
	}
	for _, e := range o.Exemplars {
		e.Row += at
		b.Exemplars = append(b.Exemplars, e)
	}
	for _, s := range o.Starts {
		s.Row += at
		b.Starts = append(b.Starts, s)
	}
}
