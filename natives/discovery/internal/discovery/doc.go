// Package discovery runs Prometheus's own service discovery as a component that
// exports `targets`. It is not a component: the components, such as
// natives/discovery/http, convert their arguments to Prometheus's Config and
// leave the rest to Component.
//
// The targets and their labels are those of Prometheus; the rest is different.
// Groups are merged by source into one list (Set), whose order depends only on
// the targets, so that finding the same targets again exports nothing. The first
// of a burst of updates is exported immediately, the following ones at most every
// 250 ms. Known targets stay exported during failures, which are shown in the
// health, and during changes of arguments, until the new discovery has found its
// targets. An unchanged target is the same map in every export, which makes
// comparisons cheap for downstream components; therefore, nobody may write to it.
package discovery
