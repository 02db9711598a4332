package api

// Types that the table cannot express because they depend on other types. Each refers
// to an entry of the table, which a test checks. Entries that are not here are generated
// from the table alone.

// tsPrelude is the beginning of the module weir.
const tsPrelude = `
const kind: unique symbol;

/** Values of labels. Numbers and booleans become text; undefined removes the label. */
export type LabelValues = { [name: string]: string | number | boolean | null | undefined };

/** A type of the namespace arg. V is the value in the script, C the value in the config. */
export interface Argument<out V = any, out C = V> {
  readonly [kind]: [V, C];
}

/** The arguments of a component, by name. */
export type Arguments = { [name: string]: Argument };

/** The type of ctx.args: the values of the arguments. */
export type ArgumentsOf<A> = 0 extends 1 & A ? any : { readonly [K in keyof A]: A[K] extends Argument<infer V, any> ? V : never };

/** The parameter of ctx.export. */
export type Exported<X> = 0 extends 1 & X ? any : { readonly [K in keyof X]?: X[K] extends Argument<infer V, infer C> ? V | C : never };

/** The state of a component, by name. */
export type States = { [name: string]: State<any> };

/** The type of ctx.state. */
export type StatesOf<S> = 0 extends 1 & S ? any : { readonly [K in keyof S]: S[K] extends State<infer T> ? T : never };

/**
 * The declared parts of a definition. For a function outside the definition, Context<{ args: typeof args; state: typeof
 * state }> is the type of ctx with the arguments and the state that these constants declare.
 */
export type Shape = { args?: Arguments; state?: States; outputs?: readonly string[]; needs?: Needs; exports?: Arguments };

/** The type of ctx, the context of a hook. Without a shape, it has all members, and args and state have any type. */
export type Context<D extends Shape = any> = ContextBase<D> &
  (0 extends 1 & D ? Outside & { readonly http: ContextHttp; readonly env: { readonly [name: string]: string | undefined } } : Granted<D>);

/** The members that ctx has because the definition needs them. */
type Granted<D> = (D extends { needs: { http: true | readonly string[] } } ? { readonly http: ContextHttp } : {}) &
  (D extends { needs: { read: true | readonly string[] } } ? Pick<Outside, "read"> : {}) &
  (D extends { needs: { exec: true | readonly string[] } } ? Pick<Outside, "exec"> : {}) &
  (D extends { needs: { env: infer E extends readonly string[] } } ? { readonly env: { readonly [K in E[number]]: string | undefined } } : {});

/** A secret. It is printed as <secret>, and only functions of ctx that accept secrets can use it. */
export interface Secret {
  readonly [kind]: "secret";
  toString(): "<secret>";
}

/** The response of an http hook: nothing, a body, a status, or an object with all of them. */
export type Answer = void | undefined | string | number | { status?: number; headers?: { [name: string]: string }; body?: string; json?: any };

/** The input of a sink: a batch of a signal that it accepts. */
export type Accepted<C extends readonly string[]> = C[number] extends "logs" ? LogBatch : C[number] extends "metrics" ? Batch : Batch | LogBatch;

type Waiting = void | Promise<void>;

/** The result of a function that the host calls synchronously, so it cannot be async. */
type Sync<R> = R extends PromiseLike<any> ? "this function cannot be async" : R;

/** Values of fields of a metric record, in order. */
export type MetricFields<F extends readonly string[]> = { -readonly [I in keyof F]: MetricField<F[I]> };
export type MetricField<F> = F extends "value" | "time" ? number : F extends "stale" ? boolean : F extends "name" | "type" ? string : string | undefined;

/** Values of fields of a log record, in order. */
export type LogFields<F extends readonly string[]> = { -readonly [I in keyof F]: LogField<F[I]> };
export type LogField<F> = F extends "time" ? number : F extends "line" | "ts" ? string : F extends ` + "`json.${string}`" + ` ? any : string | undefined;
`

// tsReplies is the beginning of the module weir/test.
const tsReplies = `
/** The response of a mock: an object, a text, a list with one response per call, or a function that returns a response. */
export type Reply = string | { [key: string]: any } | readonly Reply[] | ((...asked: any[]) => any);
`

// tsData declares imported data files in formats other than JSON.
const tsData = `
declare module "*.yaml" {
  const data: any;
  export default data;
}

declare module "*.yml" {
  const data: any;
  export default data;
}
`

// tsGenerics are the parameters of interfaces.
var tsGenerics = map[string]string{
	"ContextBase":   "<D extends Shape = any>",
	"SeriesContext": "<D extends Shape = any>",
	"State":         "<T>",
	"StateMap":      "<V = any>",
	"StateLru":      "<V = any>",
	"StateQueue":    "<V = any>",
}

// tsMembers are members that have no entry in the table.
var tsMembers = map[string]string{
	"Labels":     "[name: string]: string | undefined;",
	"Metadata":   "[name: string]: string | undefined;",
	"State":      "readonly [kind]: T;",
	"Definition": "readonly [kind]: \"definition\";",
}

const (
	tsAnyShape  = "0 extends 1 & D ? any : "
	tsArgsField = "readonly args: " + tsAnyShape + "D extends { args: infer A } ? ArgumentsOf<A> : {};"
)

// tsSpecial are members as written: whole fields, and functions from their type
// parameters on, with one signature per line. "" omits a member.
var tsSpecial = map[string]string{
	"ContextBase.args":  tsArgsField,
	"ContextBase.state": "readonly state: " + tsAnyShape + "D extends { state: infer S } ? StatesOf<S> : {};",
	"ContextBase.http":  "", // of Context, if needs contains it
	"ContextBase.env":   "",
	"ContextBase.route": "(output: D extends { outputs: infer O extends readonly string[] } ? O[number] : string, record: MetricRecord | MetricCopy | LogRecord | LogCopy | EmittedMetric | EmittedLine | number): void;",
	"ContextBase.emit":  "(record: MetricRecord | MetricCopy | LogRecord | LogCopy | EmittedMetric | EmittedLine): void;",

	"ContextBase.export": "(values: D extends { exports: infer X } ? Exported<X> : never): void;",

	"ContextBase.reject": "(record: MetricRecord | LogRecord, reason?: string): void;\n(reason: string): void;",

	"SeriesContext.args": tsArgsField,

	"Batch.filter":   "<const F extends readonly string[]>(fields: F, fn: (...values: MetricFields<F>) => boolean): void;",
	"Batch.rows":     "<const F extends readonly string[]>(...fields: F): IterableIterator<[i: number, ...values: MetricFields<F>]>;",
	"Batch.group_by": "<const F extends readonly string[]>(fields: F): IterableIterator<[group: Group, ...values: MetricFields<F>]>;",
	"Batch.each":     "<R>(fn: (record: MetricRecord) => R & Sync<R>): void;",
	"Batch.set": "<F extends string>(i: number, field: F, value: F extends \"value\" | \"time\" ? number : F extends \"stale\" ? boolean : F extends \"name\" ? string : string | number | boolean | null | undefined): void;\n" +
		"(i: number, fields: { value?: number; time?: number; stale?: boolean; name?: string } & LabelValues): void;",

	"LogBatch.filter":   "<const F extends readonly string[]>(fields: F, fn: (...values: LogFields<F>) => boolean): void;",
	"LogBatch.rows":     "<const F extends readonly string[]>(...fields: F): IterableIterator<[i: number, ...values: LogFields<F>]>;",
	"LogBatch.group_by": "<const F extends readonly string[]>(fields: F): IterableIterator<[group: LogGroup, ...values: LogFields<F>]>;",
	"LogBatch.each":     "<R>(fn: (record: LogRecord) => R & Sync<R>): void;",
	"LogBatch.json":     "<const F extends readonly string[]>(paths: F, fn: (...values: [...{ -readonly [I in keyof F]: any }, record: LogRecord]) => boolean | void): void;",
	"LogBatch.logfmt":   "<const F extends readonly string[]>(keys: F, fn: (...values: [...{ -readonly [I in keyof F]: string | undefined }, record: LogRecord]) => boolean | void): void;",
	"LogBatch.match":    "(pattern: string | import(\"weir/re\").Pattern, fn: (...values: any[]) => boolean | void): void;",
	"LogBatch.set": "(i: number, field: string, value: string | number | boolean | null | undefined): void;\n" +
		"(i: number, fields: LabelValues): void;",
	"LogRecord.match": "(pattern: string | import(\"weir/re\").Pattern): string[] | undefined;",

	"MetricRecord.histogram": "readonly histogram: Histogram | undefined;",
	"MetricCopy.histogram":   "readonly histogram: Histogram | undefined;",
	"MetricRecord.exemplars": "readonly exemplars: Exemplar[] | undefined;",
	"MetricCopy.exemplars":   "readonly exemplars: Exemplar[] | undefined;",

	"weir.test.http":  "(replies: { [key: string]: Reply }): Mock;",
	"weir.test.files": "(replies: { [path: string]: Reply | false }): void;",
	"weir.test.exec":  "(replies: { [command: string]: Reply }): void;",

	"test.Component.state":    "(name: string): any;",
	"test.Component.logged":   "(): string[];",
	"test.Batch.records":      "(): IterableIterator<any>;",
	"test.Batch.routed":       "(output: string): Batch;",
	"test.Batch.series":       "(): string[];",
	"test.Batch.names":        "(): string[];",
	"test.Batch.label_values": "(label: string): string[];",
	"test.Batch.lines":        "(): string[];",
	"test.Batch.streams":      "(): string[];",
	"test.Batch.errors":       "(): string[];",

	"test.each": "<T extends readonly [any, ...any[]]>(cases: readonly T[]): (name: string, fn: (...args: T) => any) => void;\n<T>(cases: readonly T[]): (name: string, fn: (...args: T extends readonly any[] ? T : [T]) => any) => void;",

	"StateMap.get":        "(key: string): V | undefined;",
	"StateMap.set":        "(key: string, value: V | null | undefined): boolean;",
	"StateMap.update":     "(key: string, fn: (old: V | undefined) => V | null | undefined): V | undefined;",
	"StateMap.entries":    "(limit?: number): { [key: string]: V };",
	"StateLru.get":        "(key: string): V | undefined;",
	"StateLru.set":        "(key: string, value: V | null | undefined): boolean;",
	"StateLru.update":     "(key: string, fn: (old: V | undefined) => V | null | undefined): V | undefined;",
	"StateLru.entries":    "(limit?: number): { [key: string]: V };",
	"StateQueue.push":     "(value: V): boolean;",
	"StateQueue.pop":      "(): V | undefined;",
	"StateQueue.peek":     "(): V | undefined;",
	"StateQueue.entries":  "(limit?: number): V[];",
	"StateCounter.update": "(key: string, fn: (old: number | undefined) => number | null | undefined): number;",
}

// tsPart is a function of weir.arg or weir.state, with a declaration that is
// generic in the declared type.
type tsPart struct{ signatures []tsSignature }

type tsSignature struct {
	generics string
	more     string // options with special types, which come first
	required bool   // the options
	result   string
}

// tsArg returns a type of argument. The first signature is that of an optional
// argument.
func tsArg(generics, config, script, more string, required bool) tsPart {
	if more != "" {
		more += "; "
	}
	return tsPart{[]tsSignature{
		{generics, more + "optional: true; default?: never", true, "Argument<" + script + " | undefined, " + config + ">"},
		{generics, more + "optional?: false; default?: " + config, required, "Argument<" + script + ", " + config + ">"},
	}}
}

func tsState(generics, typ, more string) tsPart {
	return tsPart{[]tsSignature{{generics, more, false, "State<" + typ + ">"}}}
}

// tsParts are by the names of the table.
var tsParts = map[string]tsPart{
	"arg.string":   tsArg("", "string", "string", "", false),
	"arg.int":      tsArg("", "number", "number", "", false),
	"arg.number":   tsArg("", "number", "number", "", false),
	"arg.bool":     tsArg("", "boolean", "boolean", "", false),
	"arg.duration": tsArg("", "string | number", "number", "", false),
	"arg.size":     tsArg("", "string | number", "number", "", false),
	"arg.list":     tsArg("<V = string, C = string>", "readonly NoInfer<C>[]", "V[]", "of?: Argument<V, C>", false),
	"arg.map":      tsArg("<V = string, C = string>", "{ readonly [key: string]: NoInfer<C> }", "{ [key: string]: V }", "of?: Argument<V, C>", false),
	"arg.enum":     tsArg("<const V extends string>", "NoInfer<V>", "V", "values: readonly V[]", true),
	"arg.secret": {[]tsSignature{
		{"", "optional: true", true, "Argument<Secret | undefined, string>"},
		{"", "optional?: false", false, "Argument<Secret, string>"},
	}},
	"arg.targets": tsArg("", "readonly { readonly [label: string]: string }[]", "{ [label: string]: string }[]", "", false),
	"arg.regexp":  tsArg("", "string", `import("weir/re").Pattern`, "", false),
	"arg.block": {[]tsSignature{
		{"<F extends Arguments>", "fields: F; repeated: true; optional?: boolean", true, "Argument<ArgumentsOf<F>[], never>"},
		{"<F extends Arguments>", "fields: F; repeated?: false; optional: true", true, "Argument<ArgumentsOf<F> | undefined, never>"},
		{"<F extends Arguments>", "fields: F; repeated?: false; optional?: false", true, "Argument<ArgumentsOf<F>, never>"},
	}},

	"state.counter": tsState("", "StateCounter", ""),
	"state.map":     tsState("<V = any>", "StateMap<V>", ""),
	"state.set":     tsState("", "StateSet", ""),
	"state.lru":     tsState("<V = any>", "StateLru<V>", ""),
	"state.queue":   tsState("<V = any>", "StateQueue<V>", ""),
}
