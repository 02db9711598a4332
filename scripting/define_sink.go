package scripting

// hookSend is the hook of a sink. VM.Metrics and VM.Logs run it, of a program
// whose Kind is Sink.
const hookSend = "send"

// defineAccepts reads accepts = { "metrics", "logs" }: what a sink takes.
func defineAccepts(d *definer, field RawField) { d.def.takes = d.signals(field) }

// defineBatch refuses batch = { max_records = …, max_bytes = …, max_wait = … }.
func defineBatch(d *definer, field RawField) {
	d.fail(field.Line, "cannot use batch in weir.%s: it is not supported yet", d.kind)
}

// completeSink checks what a sink must have. It takes metrics unless it says
// otherwise.
func (d *definer) completeSink(line int) {
	if !d.def.Send && len(d.errs) == 0 {
		d.fail(line, "cannot use a sink without the hook send: write send = function(batch, ctx) … end")
	}
	if d.def.takes == 0 {
		d.def.takes = sendsMetrics
	}
	d.fail(line, "cannot use weir.sink: it is not supported yet, there is weir.transform and weir.source")
}
