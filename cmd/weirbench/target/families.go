package target

import (
	"fmt"
	"strconv"
)

// perHandler is the number of samples of one handler of the application.
const perHandler = 40

// newBody creates a body with o.Series samples: runtime metrics of a Go service,
// then requests, latencies, sizes, calls and caches by handler, and gauges for
// the rest.
func newBody(o Options) *Body {
	w := &writer{format: o.Format, rng: 1}
	if o.Churn > 0 {
		w.lives = int(1/o.Churn + 0.5)
	}
	left := o.Series - o.Sequences
	runtime := min(len(runtimeMetrics), left)
	for _, m := range runtimeMetrics[:runtime] {
		w.family(m.name, m.kind, m.help)
		w.series(m.name, "")
		w.value(m.shape, m.step, w.isIdle(1))
	}
	left -= runtime
	handlers := left / perHandler
	families := []func(*writer, int){requests, durations, sizes, calls, caches}
	for i, f := range families {
		// Sequences are distributed between families as evenly as possible.
		for w.sequences < o.Sequences*(i+1)/(len(families)+1) {
			w.sequence()
		}
		f(w, handlers)
	}
	if n := left - handlers*perHandler; n > 0 {
		w.family("app_shard_lag_seconds", "gauge", "How far a shard is behind its leader.")
		for i := range n {
			w.series("app_shard_lag_seconds", fmt.Sprintf(`shard="%d"`, i))
			w.value(fmt.Sprintf("%d.%03d", 1+w.rand(9), w.rand(1000)), 1+w.rand(97), w.isIdle(1))
		}
	}
	for w.sequences < o.Sequences {
		w.sequence()
	}
	if o.Format == OpenMetrics {
		w.text = append(w.text, "# EOF\n"...)
	}
	return &w.Body
}

// runtimeMetrics are series without labels, like those of client_golang's
// collectors.
var runtimeMetrics = []struct {
	name, kind, shape string
	step              uint64
	help              string
}{
	{"go_goroutines", "gauge", "137", 13, "Number of goroutines that currently exist."},
	{"go_threads", "gauge", "21", 3, "Number of OS threads created."},
	{"go_memstats_alloc_bytes", "gauge", "4.8193512e+07", 13177, "Number of bytes allocated in heap and currently in use."},
	{"go_cgo_go_to_c_calls_calls_total", "counter", "182304", 7, "Count of calls made from Go to C by the current process."},
	{"go_memstats_sys_bytes", "gauge", "1.20334552e+08", 17, "Number of bytes obtained from system."},
	{"go_memstats_mallocs_total", "counter", "2.118467313e+09", 53129, "Total number of heap objects allocated, both live and gc-ed."},
	{"go_memstats_frees_total", "counter", "2.117967421e+09", 53093, "Total number of heap objects frees."},
	{"go_memstats_heap_alloc_bytes", "gauge", "4.8193512e+07", 13177, "Number of heap bytes allocated and currently in use."},
	{"go_memstats_heap_idle_bytes", "gauge", "5.3428224e+07", 8191, "Number of heap bytes waiting to be used."},
	{"go_memstats_heap_inuse_bytes", "gauge", "5.7245696e+07", 8191, "Number of heap bytes that are in use."},
	{"go_memstats_heap_objects", "gauge", "499892", 1237, "Number of currently allocated objects."},
	{"go_memstats_next_gc_bytes", "gauge", "7.2389424e+07", 3121, "Number of heap bytes when next garbage collection will take place."},
	{"go_memstats_last_gc_time_seconds", "gauge", "1.7320143481226034e+09", 2000000000, "Number of seconds since 1970 of last garbage collection."},
	{"go_sched_gomaxprocs_threads", "gauge", "8", 1, "The current runtime.GOMAXPROCS setting."},
	{"process_cpu_seconds_total", "counter", "18423.37", 131, "Total user and system CPU time spent in seconds."},
	{"process_open_fds", "gauge", "214", 7, "Number of open file descriptors."},
	{"process_resident_memory_bytes", "gauge", "1.42659584e+08", 4096, "Resident memory size in bytes."},
	{"process_network_receive_bytes_total", "counter", "3.42931847e+10", 71933, "Number of bytes received by the process over the network."},
	{"process_network_transmit_bytes_total", "counter", "5.13042711e+10", 99371, "Number of bytes sent by the process over the network."},
	{"process_start_time_seconds", "gauge", "1.73200000012e+09", 1, "Start time of the process since unix epoch in seconds."},
}

// handler returns the path of a handler. Paths have different lengths.
func handler(i int) string {
	nouns := [...]string{"orders", "customers", "invoices", "shipments", "warehouse-locations", "carts", "payments", "sessions", "recommendations", "prices"}
	verbs := [...]string{"", "/{id}", "/{id}/items", "/search", "/{id}/items/{item}/history"}
	return fmt.Sprintf("/api/v%d/%s%s", 1+i/50, nouns[i%10], verbs[i/10%5])
}

func requests(w *writer, handlers int) {
	const name = "http_requests_total"
	if handlers == 0 {
		return
	}
	w.family(name, "counter", "Requests answered, by handler, method and status code.")
	for i := range handlers {
		idle := w.isIdle(6)
		for _, l := range []string{`code="200",method="GET"`, `code="304",method="GET"`, `code="404",method="GET"`, `code="500",method="GET"`, `code="201",method="POST"`, `code="409",method="POST"`} {
			code, method := l[:10], l[11:]
			w.series(name, code+`,handler="`+handler(i)+`",`+method)
			w.value(strconv.FormatUint(1000+w.rand(8000), 10), 1+w.rand(300), idle)
		}
	}
}

// histogram writes one child of a histogram family with its sum and count.
func histogram(w *writer, name, labels string, bounds []string, sum string) {
	idle := w.isIdle(len(bounds) + 2)
	count, step := 1_000_000+w.rand(10000), uint64(0) // enough digits for the longest lap
	for _, le := range bounds {
		w.series(name+"_bucket", labels+`,le="`+le+`"`)
		step += 1 + w.rand(9)
		w.value(strconv.FormatUint(count, 10), step, idle)
		count += 1 + w.rand(3000)
	}
	w.series(name+"_sum", labels)
	w.value(sum, 1+w.rand(100000), idle)
	w.series(name+"_count", labels)
	w.value(strconv.FormatUint(count, 10), step, idle)
}

func durations(w *writer, handlers int) {
	const name = "http_request_duration_seconds"
	if handlers == 0 {
		return
	}
	bounds := []string{"0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "+Inf"}
	if w.format == Text {
		bounds[7], bounds[9], bounds[10] = "1", "5", "10"
	}
	w.family(name, "histogram", "How long requests took, by handler.")
	for i := range handlers {
		histogram(w, name, `handler="`+handler(i)+`"`, bounds, fmt.Sprintf("%d.%09d", 100+w.rand(900), w.rand(1e9)))
	}
}

func sizes(w *writer, handlers int) {
	const name = "http_response_size_bytes"
	if handlers == 0 {
		return
	}
	bounds := []string{"100.0", "1000.0", "10000.0", "100000.0", "1e+06", "1e+07", "1e+08", "+Inf"}
	if w.format == Text {
		bounds[0], bounds[1], bounds[2], bounds[3] = "100", "1000", "10000", "100000"
	}
	w.family(name, "histogram", "How large answers were, by handler.")
	for i := range handlers {
		histogram(w, name, `handler="`+handler(i)+`"`, bounds, fmt.Sprintf("%d.%08de+08", 1+w.rand(9), w.rand(1e8)))
	}
}

func calls(w *writer, handlers int) {
	const name = "rpc_duration_seconds"
	if handlers == 0 {
		return
	}
	w.family(name, "summary", "How long calls of the service behind a handler took.")
	for i := range handlers {
		idle := w.isIdle(5)
		labels := fmt.Sprintf(`service="backend-%d"`, i)
		for _, q := range []string{"0.5", "0.9", "0.99"} {
			w.series(name, `quantile="`+q+`",`+labels)
			w.value(fmt.Sprintf("0.%09d", w.rand(1e9)), 1+w.rand(1e6), idle)
		}
		w.series(name+"_sum", labels)
		w.value(fmt.Sprintf("%d.%06d", 10000+w.rand(80000), w.rand(1e6)), 1+w.rand(100000), idle)
		w.series(name+"_count", labels)
		w.value(strconv.FormatUint(100000+w.rand(800000), 10), 1+w.rand(500), idle)
	}
}

func caches(w *writer, handlers int) {
	if handlers == 0 {
		return
	}
	gauge := func(name, help, labels string, values []string) {
		w.family(name, "gauge", help)
		for i := range handlers {
			idle := w.isIdle(len(values))
			for _, v := range values {
				w.series(name, fmt.Sprintf(`%s="%s",pool="pool-%d"`, labels, v, i))
				w.value(strconv.FormatUint(100+w.rand(800), 10), 1+w.rand(50), idle)
			}
		}
	}
	gauge("app_connections", "Connections of a pool, by state.", "state", []string{"idle", "busy", "waiting"})
	gauge("app_cache_entries", "Entries of a cache, by tier.", "tier", []string{"memory", "disk"})
}
