// The short menu, as a user of the TypeScript SDK would write it: node server.mjs PORT [stateless], or: node server.mjs stdio
//
// Requests of 2026-07-28 are served one by one, and older ones in sessions whose streams can be
// resumed, or one by one as well. Handlers are written once: the SDK turns what they ask into requests where it must.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    completable,
    createMcpHandler,
    inputRequired,
    inputResponse,
    isLegacyRequest,
    McpServer,
    ResourceTemplate,
    WebStandardStreamableHTTPServerTransport
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const HELLO = 'Grüße, 世界 \u{1f30d}';
// The same grey pixel as in menu.py.
const PIXEL = process.env.INTEROP_PIXEL;
const STYLES = ['short', 'long', 'kind'];
const CITIES = ['Oslo', 'Ottawa', 'Rome'];
let givenUp = 0;

const text = value => ({ content: [{ type: 'text', text: String(value) }] });

// Answer with what `question` asks, until the client has answered it.
function asked(ctx, question, then) {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'question');
    return answer.kind === 'missing' ? inputRequired({ inputRequests: { question } }) : then(answer);
}

function sleep(ms, signal) {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, ms);
        signal.addEventListener('abort', () => {
            clearTimeout(timer);
            reject(new Error('given up'));
        });
    });
}

async function progress(ctx, params) {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken !== undefined) {
        await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...params } });
    }
}

function menu() {
    const server = new McpServer(
        { name: 'theirs, typescript', version: '1.0.0' },
        { instructions: 'Ask for one city at a time.', capabilities: { logging: {} } }
    );
    tools(server);
    asking(server);
    resources(server);
    prompts(server);
    return server;
}

function tools(server) {
    server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, ({ text: given }) => text(given));
    server.registerTool('add', { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => text(a + b));
    server.registerTool(
        'forecast',
        {
            inputSchema: z.object({ city: z.string() }),
            outputSchema: z.object({ city: z.string(), days: z.array(z.string()) })
        },
        ({ city }) => {
            const structuredContent = { city, days: ['sun', 'sun'] };
            return { ...text(JSON.stringify(structuredContent)), structuredContent };
        }
    );
    server.registerTool('picture', {}, () => ({ content: [{ type: 'image', mimeType: 'image/png', data: PIXEL }] }));
    server.registerTool('fails', {}, () => ({ ...text('no luck today'), isError: true }));
    server.registerTool('steps', { inputSchema: z.object({ count: z.number() }) }, async ({ count }, ctx) => {
        for (let step = 1; step <= count; step++) {
            await progress(ctx, { progress: step, total: count, message: `step ${step}` });
        }
        return text(`${count} steps`);
    });
    server.registerTool('chatter', {}, async ctx => {
        for (const level of ['debug', 'info', 'warning', 'error']) {
            await ctx.mcpReq.log(level, `this is ${level}`, 'chatter');
        }
        return text('said');
    });
    server.registerTool('slow', {}, async ctx => {
        ctx.mcpReq.signal.addEventListener('abort', () => (givenUp += 1));
        await progress(ctx, { progress: 0 });
        await sleep(30_000, ctx.mcpReq.signal);
        return text('at last');
    });
    server.registerTool('given_up', {}, () => text(givenUp));
    server.registerTool('cut', {}, async ctx => {
        // The stream ends before the result, which the client has to come back for.
        ctx.http?.closeSSE?.();
        await sleep(200, ctx.mcpReq.signal);
        return text('whole');
    });
}

function asking(server) {
    server.registerTool('ask_model', {}, ctx =>
        asked(
            ctx,
            inputRequired.createMessage({
                messages: [{ role: 'user', content: { type: 'text', text: 'Which way?' } }],
                maxTokens: 10
            }),
            ({ result }) => text(`${result.model} said ${[result.content].flat()[0].text}`)
        )
    );
    server.registerTool('ask_user', { inputSchema: z.object({ message: z.string() }) }, ({ message }, ctx) =>
        asked(
            ctx,
            inputRequired.elicit({ message, requestedSchema: z.object({ city: z.string() }) }),
            ({ action, content }) => text(`${action} ${content?.city ?? 'None'}`)
        )
    );
    const trip = z.object({
        day: z.enum(['Friday', 'Sunday']),
        persons: z.int(),
        price: z.number(),
        breakfast: z.boolean(),
        city: z.string().default('Bergen')
    });
    server.registerTool('ask_form', {}, ctx =>
        asked(ctx, inputRequired.elicit({ message: 'Which trip?', requestedSchema: trip }), ({ content }) =>
            text(`${content.day} ${content.persons} ${content.price} ${content.breakfast ? 'True' : 'False'} ${content.city}`)
        )
    );
    server.registerTool('ask_roots', {}, ctx =>
        asked(ctx, inputRequired.listRoots(), ({ roots }) => text(roots.map(root => root.uri).join(' ')))
    );
    server.registerTool('who', {}, ctx => {
        const envelope = ctx.mcpReq.envelope ?? {};
        const client = envelope['io.modelcontextprotocol/clientInfo'] ?? server.server.getClientVersion();
        const revision =
            envelope['io.modelcontextprotocol/protocolVersion'] ?? server.server.getNegotiatedProtocolVersion();
        return text(`${client?.name} ${revision}`);
    });
}

function resources(server) {
    server.registerResource('hello', 'note://hello', { mimeType: 'text/plain' }, uri => ({
        contents: [{ uri: uri.href, text: HELLO, mimeType: 'text/plain' }]
    }));
    server.registerResource('pixel', 'note://pixel', { mimeType: 'image/png' }, uri => ({
        contents: [{ uri: uri.href, blob: PIXEL, mimeType: 'image/png' }]
    }));
    const template = new ResourceTemplate('city://{name}', {
        list: undefined,
        complete: { name: typed => CITIES.filter(each => each.startsWith(typed)) }
    });
    server.registerResource('city', template, {}, (uri, { name }) => ({
        contents: [{ uri: uri.href, text: `${name} is a city.` }]
    }));
}

function prompts(server) {
    const style = completable(z.string(), typed => STYLES.filter(each => each.startsWith(typed))).optional();
    const user = given => ({ role: 'user', content: { type: 'text', text: given } });
    server.registerPrompt('review', { argsSchema: z.object({ code: z.string(), style }) }, given => ({
        messages: [user(`Review this in ${given.style ?? 'short'} form: ${given.code}`)]
    }));
    server.registerPrompt('greet', { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
        messages: [user(`I am ${name}.`), { role: 'assistant', content: { type: 'text', text: HELLO } }]
    }));
}

// Events of all streams, in order, so that each can be resumed.
class Events {
    #events = [];

    async storeEvent(stream, message) {
        this.#events.push({ stream, message });
        return String(this.#events.length - 1);
    }

    async replayEventsAfter(last, { send }) {
        const from = Number(last);
        const { stream } = this.#events[from];
        for (let id = from + 1; id < this.#events.length; id++) {
            const event = this.#events[id];
            // The event that primes a stream has no message.
            if (event.stream === stream && event.message && Object.keys(event.message).length > 0) {
                await send(String(id), event.message);
            }
        }
        return stream;
    }
}

const sessions = new Map();

async function inSession(request, options) {
    const known = request.headers.get('mcp-session-id');
    if (known !== null) {
        const transport = sessions.get(known);
        return transport ? transport.handleRequest(request, options) : new Response(null, { status: 404 });
    }
    const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new Events(),
        retryInterval: 50,
        onsessioninitialized: id => void sessions.set(id, transport),
        onsessionclosed: id => void sessions.delete(id)
    });
    await menu().connect(transport);
    return transport.handleRequest(request, options);
}

const alone = createMcpHandler(menu);
const hasSessions = process.argv[3] !== 'stateless';
const handler = toNodeHandler({
    fetch: async (request, options) =>
        hasSessions && (await isLegacyRequest(request.clone(), options?.parsedBody))
            ? inSession(request, options)
            : alone.fetch(request, options)
});
if (process.argv[2] === 'stdio') serveStdio(menu);
else createServer(handler).listen(Number(process.argv[2]), '127.0.0.1');
