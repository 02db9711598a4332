package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/annotations"
)

const (
	maxSamples = 50_000_000 // in memory, per query
	maxPoints  = 11_000     // per series of a range query, as in Prometheus
)

// answer returns the result of h in the envelope of Prometheus's API.
func answer(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, warnings, err := h(r)
		var body struct {
			Status    string   `json:"status"`
			Data      any      `json:"data,omitempty"`
			ErrorType string   `json:"errorType,omitempty"`
			Error     string   `json:"error,omitempty"`
			Warnings  []string `json:"warnings,omitempty"`
			Infos     []string `json:"infos,omitempty"`
		}
		body.Status, body.Data = "success", data
		body.Warnings, body.Infos = warnings.AsStrings(r.FormValue("query"), 10, 10)
		code := http.StatusOK
		if err != nil {
			code, body.ErrorType = errorType(err)
			body.Status, body.Data, body.Error = "error", nil, err.Error()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body) // fails only if the client has gone
	}
}

// paramError is an error of a parameter of a request.
type paramError struct {
	name string
	err  error
}

func badParam(name string, err error) error { return &paramError{name, err} }

func (e *paramError) Error() string {
	return fmt.Sprintf("invalid parameter %q: %v", e.name, e.err)
}

func (e *paramError) Unwrap() error { return e.err }

// errorType returns the status and the type of an error as Prometheus defines
// them.
func errorType(err error) (code int, name string) {
	var param *paramError
	var timeout promql.ErrQueryTimeout
	var canceled promql.ErrQueryCanceled
	var store promql.ErrStorage
	switch {
	case errors.As(err, &param):
		return http.StatusBadRequest, "bad_data"
	case errors.As(err, &timeout):
		return http.StatusServiceUnavailable, "timeout"
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return 499, "canceled" // the client has closed the connection
	case errors.As(err, &store):
		return http.StatusInternalServerError, "internal"
	}
	return http.StatusUnprocessableEntity, "execution"
}

// timeParam returns the time of a parameter: Unix seconds or RFC 3339. A zero
// missing means that the parameter is required.
func timeParam(r *http.Request, name string, missing time.Time) (time.Time, error) {
	s := r.FormValue(name)
	if s == "" && !missing.IsZero() {
		return missing, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && !math.IsNaN(f) && math.Abs(f) < math.MaxInt64/1000 {
		return time.UnixMilli(int64(math.Round(f * 1000))).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, badParam(name, fmt.Errorf("%q is not a time: use Unix seconds or RFC 3339", s))
	}
	return t, nil
}

// duration returns the duration of s: seconds, or Prometheus's form such as 5m.
func duration(s string) (time.Duration, error) {
	if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < math.MaxInt64/float64(time.Second) {
		return time.Duration(f * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: use seconds or a form such as 5m", s)
	}
	return time.Duration(d), nil
}

// window returns the parameters start and end in Unix milliseconds; without them,
// all times.
func window(r *http.Request) (start, end int64, err error) {
	from, err := timeParam(r, "start", time.UnixMilli(math.MinInt64))
	if err != nil {
		return 0, 0, err
	}
	to, err := timeParam(r, "end", time.UnixMilli(math.MaxInt64))
	if err == nil && to.Before(from) {
		err = badParam("end", errors.New("must not be before start"))
	}
	return from.UnixMilli(), to.UnixMilli(), err
}

// matchers returns the selectors in the parameters match[] of r.
func (a *api) matchers(r *http.Request) ([][]*labels.Matcher, error) {
	if err := r.ParseForm(); err != nil {
		return nil, badParam("match[]", err)
	}
	sets, err := a.parser.ParseMetricSelectors(r.Form["match[]"])
	if err != nil {
		return nil, badParam("match[]", err)
	}
	return sets, nil
}

// limited returns the first elements of all, as many as the parameter limit says.
func limited[T any](r *http.Request, all []T, warnings annotations.Annotations) (any, annotations.Annotations, error) {
	s := r.FormValue("limit")
	if s == "" {
		return all, warnings, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return nil, nil, badParam("limit", fmt.Errorf("%q is not a number of results", s))
	}
	if n > 0 && len(all) > n {
		warnings.Add(errors.New("results truncated due to limit"))
		all = all[:n]
	}
	return all, warnings, nil
}
