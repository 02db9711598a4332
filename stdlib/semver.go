package stdlib

import (
	"fmt"
	"math"

	"github.com/Masterminds/semver/v3"

	"github.com/weir-run/weir/scripting"
)

// semverModule implements https://semver.org, version 2.0.0.
func semverModule() *scripting.Module {
	constraints := newCache[*semver.Constraints](1000)
	version := func(name string) scripting.Param {
		return text(name, "The version. A leading v is ignored, and missing parts, as in 1.2, are 0.")
	}
	return &scripting.Module{
		Name: "semver",
		Doc:  "Semantic versions: 1.2.3, 1.2.3-rc.1, 1.2.3+build.",
		Funcs: []scripting.Function{
			{
				Name: "parse", Doc: "Splits a version into its parts.", Params: []scripting.Param{version("s")},
				Result: scripting.Result{Kind: scripting.KindMap, Doc: "The parts.", Fails: true, Fields: []scripting.Param{
					{Name: "major", Kind: scripting.KindInt, Doc: "The major version."},
					{Name: "minor", Kind: scripting.KindInt, Doc: "The minor version."},
					{Name: "patch", Kind: scripting.KindInt, Doc: "The patch version."},
					{Name: "prerelease", Kind: scripting.KindString, Doc: `The prerelease, such as rc.1; "" if there is none.`},
					{Name: "build", Kind: scripting.KindString, Doc: `The build metadata; "" if there is none.`},
				}},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					v, err := parseVersion(a[0].(string))
					if err != nil {
						return nil, err
					}
					return mapOf("major", int64(v.Major()), "minor", int64(v.Minor()), "patch", int64(v.Patch()), "prerelease", v.Prerelease(), "build", v.Metadata()), nil
				},
				Examples: []scripting.FunctionExample{
					ex(mapOf("major", int64(1), "minor", int64(2), "patch", int64(3), "prerelease", "rc.1", "build", "abc"), "v1.2.3-rc.1+abc"),
					ex(mapOf("major", int64(1), "minor", int64(2), "patch", int64(0), "prerelease", "", "build", ""), "1.2"),
					{Args: []scripting.Value{"latest"}, Err: `cannot use "latest" as version`},
				},
			},
			{
				Name: "compare", Doc: "Compares two versions. A prerelease precedes its release; build metadata is ignored.",
				Params: []scripting.Param{version("a"), version("b")},
				Result: scripting.Result{Kind: scripting.KindInt, Doc: "-1 if a precedes b, 1 if a follows b, 0 if they are equal.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					x, err := parseVersion(a[0].(string))
					if err != nil {
						return nil, err
					}
					y, err := parseVersion(a[1].(string))
					if err != nil {
						return nil, err
					}
					return int64(x.Compare(y)), nil
				},
				Examples: []scripting.FunctionExample{ex(int64(-1), "1.9.0", "1.10.0"), ex(int64(-1), "1.0.0-rc.1", "1.0.0"), ex(int64(0), "v1.2", "1.2.0+b")},
			},
			{
				Name: "satisfies", Doc: "Reports whether a version is in a range. A prerelease is in a range only if the range names a prerelease.",
				Params: []scripting.Param{version("v"), text("range", "Comparisons such as >=1.2 <2.0, ~1.2, ^1.2, 1.x and 1.2 - 1.4; || means or. At most 1 KiB.")},
				Result: scripting.Result{Kind: scripting.KindBool, Doc: "Whether the version is in the range.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					v, err := parseVersion(a[0].(string))
					if err != nil {
						return nil, err
					}
					c, err := constraints.get(a[1].(string), parseRange)
					return err == nil && c.Check(v), err
				},
				Examples: []scripting.FunctionExample{
					ex(true, "1.4.2", ">=1.2 <2.0"), ex(false, "2.0.0", "^1.2"), ex(true, "v1.2.9", "~1.2.3 || 3.x"),
					{Args: []scripting.Value{"1.0.0", "new"}, Err: `cannot use "new" as range`},
				},
			},
			{
				Name: "valid", Doc: "Reports whether a string is a complete semantic version, without a leading v.", Params: []scripting.Param{text("s", "The text.")},
				Result: scripting.Result{Kind: scripting.KindBool, Doc: "Whether it is a semantic version."},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					_, err := semver.StrictNewVersion(a[0].(string))
					return err == nil, nil
				},
				Examples: []scripting.FunctionExample{ex(true, "1.2.3-rc.1"), ex(false, "1.2"), ex(false, "v1.2.3")},
			},
		},
	}
}

func parseVersion(s string) (*semver.Version, error) {
	v, err := semver.NewVersion(s)
	if err != nil {
		return nil, fmt.Errorf("cannot use %q as version: %w", truncate(s, 60, "…"), err)
	}
	if max(v.Major(), v.Minor(), v.Patch()) > math.MaxInt64 {
		return nil, fmt.Errorf("cannot use %q as version: a number is out of range", truncate(s, 60, "…"))
	}
	return v, nil
}

func parseRange(s string) (*semver.Constraints, error) {
	if len(s) > 1<<10 {
		return nil, fmt.Errorf("cannot use a range of %d bytes: the limit is 1024", len(s))
	}
	c, err := semver.NewConstraint(s)
	if err != nil {
		return nil, fmt.Errorf("cannot use %q as range: write comparisons such as >=1.2 <2.0, ~1.2, ^1.2, 1.x", truncate(s, 60, "…"))
	}
	return c, nil
}
