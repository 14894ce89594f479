// The client of the TypeScript SDK, version 1 or 2, driven as the Python ones are: protocol.py.
//
// node typescript.mjs '{"command": [...]}' ERA 1|2, beside the packages of that version

import { createInterface } from 'node:readline';

const [place, era, version] = process.argv.slice(2);
const { command, url } = JSON.parse(place);
const isModern = era === 'per-request';
const load = async (first, second) => import(version === '1' ? `@modelcontextprotocol/sdk/${first}` : `@modelcontextprotocol/client${second}`);
const { Client } = await load('client/index.js', '');
const { StdioClientTransport } = await load('client/stdio.js', '/stdio');
const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js', '');
const types = version === '1' ? await import('@modelcontextprotocol/sdk/types.js') : {};
const capabilities = { elicitation: { form: {} } };
const options = version === '1' ? {} : { versionNegotiation: { mode: isModern ? 'auto' : 'legacy' } };

const logs = [];
const client = new Client({ name: 'driver', version: '1.0.0' }, { capabilities, ...options });
const handle = (method, schema) => (version === '1' ? types[schema] : method);
client.setRequestHandler(handle('elicitation/create', 'ElicitRequestSchema'), () => ({ action: 'accept', content: { city: 'Oslo' } }));
client.setNotificationHandler(handle('notifications/message', 'LoggingMessageNotificationSchema'), ({ params }) => void logs.push(params.level));

const settled = async (heard, count) => {
    for (let turn = 0; turn < 500 && heard.length < count; turn++) await new Promise(resolve => setTimeout(resolve, 10));
};
const all = async (list, member) => {
    const found = [];
    let cursor;
    do {
        const page = await list(cursor === undefined ? {} : { cursor });
        found.push(...page[member]);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
};
const callWith = (name, args, options) =>
    version === '1' ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options);
const call = async ({ name, arguments: args }) => {
    const { content = [], structuredContent = null, isError = false } = await callWith(name, args);
    return { text: content.map(each => each.text ?? '').join(''), kinds: content.map(each => each.type), structured: structuredContent, is_error: isError };
};

const verbs = {
    tools: async () => {
        const found = await all(params => client.listTools(params), 'tools');
        return Object.fromEntries(found.map(each => [each.name, Object.keys(each.inputSchema.properties ?? {}).sort()]));
    },
    call,
    at_once: ({ calls }) => Promise.all(calls.map(([name, args]) => call({ name, arguments: args }))),
    resources: async () => (await all(params => client.listResources(params), 'resources')).map(each => each.uri),
    templates: async () => (await all(params => client.listResourceTemplates(params), 'resourceTemplates')).map(each => each.uriTemplate),
    read: async ({ uri }) => {
        const [{ text = null, blob = null }] = (await client.readResource({ uri })).contents;
        return { text, blob };
    },
    prompts: async () => (await all(params => client.listPrompts(params), 'prompts')).map(each => each.name),
    prompt: async ({ name, arguments: args }) => (await client.getPrompt({ name, arguments: args })).messages.map(each => each.content.text),
    complete: async ({ prompt, argument, value }) => {
        const found = await client.complete({ ref: { type: 'ref/prompt', name: prompt }, argument: { name: argument, value } });
        return found.completion.values;
    },
    ping: async () => (await client.ping(), null),
    progress: async ({ name, arguments: args }) => {
        const heard = [];
        await callWith(name, args, { onprogress: ({ progress, total = null }) => void heard.push([progress, total]) });
        await settled(heard, 3);
        return heard;
    },
    log: async ({ level, name, lines }) => {
        await client.setLoggingLevel(level);
        await callWith(name, {});
        await settled(logs, lines);
        return logs;
    },
    ask: call
};

const write = value => process.stdout.write(`${JSON.stringify(value)}\n`);
const transport = url
    ? new StreamableHTTPClientTransport(new URL(url))
    : new StdioClientTransport({ command: command[0], args: command.slice(1) });
await client.connect(transport);
write({ verbs: Object.keys(verbs) });
for await (const line of createInterface({ input: process.stdin })) {
    const { verb, arguments: given } = JSON.parse(line);
    try {
        write({ value: await verbs[verb](given) });
    } catch (error) {
        write({ failed: String(error?.message ?? error), code: typeof error?.code === 'number' ? error.code : null });
    }
}
if (url && !isModern) await transport.terminateSession();
await client.close();
