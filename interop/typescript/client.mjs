// The client of the TypeScript SDK, and what it finds of a server: node client.mjs URL MODE
//
// MODE is "legacy", "auto" or a revision. Prints the revision that is spoken, then reads names of
// checks from standard input, one per line, and prints for each what it found wrong, or nothing.

import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';

import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const HELLO = 'Grüße, 世界 \u{1f30d}';
const PIXEL = process.env.INTEROP_PIXEL;
const ANSWERS = { city: 'Oslo', day: 'Sunday', persons: 2, price: 9.5, breakfast: false, extras: ['sauna', 'dog'], sure: true };
const [url, mode] = process.argv.slice(2);
const logs = [];
const notes = [];
const asked = [];

const client = new Client(
    { name: 'theirs', version: '2.4.0' },
    {
        capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } },
        versionNegotiation: { mode: mode === 'legacy' || mode === 'auto' ? mode : { pin: mode } }
    }
);
client.setRequestHandler('elicitation/create', ({ params }) => {
    asked.push(params);
    if (params.mode === 'url') return { action: 'accept' };
    if (params.message === 'May I know your age?') return { action: 'decline' };
    const names = Object.keys(params.requestedSchema.properties);
    return { action: 'accept', content: Object.fromEntries(names.map(name => [name, ANSWERS[name]])) };
});
client.setRequestHandler('sampling/createMessage', ({ params }) => {
    const { text } = [params.messages[0].content].flat()[0];
    return { role: 'assistant', model: 'oracle', content: { type: 'text', text: `${text} That way.` } };
});
client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///home/oslo' }] }));
client.setNotificationHandler('notifications/message', ({ params }) => void logs.push(params));
for (const kind of ['tools', 'prompts', 'resources']) {
    client.setNotificationHandler(`notifications/${kind}/list_changed`, () => void notes.push(kind));
}
client.setNotificationHandler('notifications/resources/updated', ({ params }) => void notes.push(params.uri));

const isModern = () => client.getProtocolEra() === 'modern';
const call = (name, args = {}, options) => client.callTool({ name, arguments: args }, options);
const said = async (name, args, options) => {
    const result = await call(name, args, options);
    assert.ok(!result.isError, JSON.stringify(result));
    return result.content[0].text;
};
const fails = async (work, code) => {
    const error = await work.then(value => assert.fail(`got ${JSON.stringify(value)}`), error => error);
    assert.ok(error instanceof ProtocolError, String(error));
    assert.equal(error.code, code);
    return error;
};
const until = async (condition, what) => {
    for (let turn = 0; turn < 500; turn++) {
        if (await condition()) return;
        await new Promise(resolve => setTimeout(resolve, 10));
    }
    assert.fail(`within 5 s there was no ${what}`);
};
const pages = async (list, member) => {
    const found = [];
    let cursor;
    do {
        const page = await list(cursor === undefined ? {} : { cursor });
        found.push(...page[member]);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
};

const checks = {
    'the server says who it is': async () => {
        assert.equal(client.getServerVersion()?.name, 'ours');
        assert.equal(client.getInstructions(), 'Ask for one city at a time.');
        for (const kind of ['tools', 'resources', 'prompts']) assert.ok(client.getServerCapabilities()[kind], kind);
    },
    'discover tells who and what': async () => {
        const found = await client.discover();
        assert.ok(found.supportedVersions.includes('2026-07-28'));
    },
    'ping is answered': async () => void (await client.ping()),
    'everything is listed': async () => {
        const tools = await pages(params => client.listTools(params), 'tools');
        for (const name of ['echo', 'add', 'ask_user', 'leave']) assert.ok(tools.some(tool => tool.name === name), name);
        const found = await pages(params => client.listResources(params), 'resources');
        assert.deepEqual(found.map(each => each.uri), ['note://hello', 'note://pixel', 'note://more']);
        const templates = await pages(params => client.listResourceTemplates(params), 'resourceTemplates');
        assert.ok(templates.some(each => each.uriTemplate === 'city://{name}'));
        const prompts = await pages(params => client.listPrompts(params), 'prompts');
        assert.deepEqual(prompts.map(each => each.name), ['review', 'greet', 'plain', 'guide']);
    },
    'a text comes back as it went': async () => assert.equal(await said('echo', { text: HELLO }), HELLO),
    'many calls at once are told apart': async () => {
        const numbers = [...Array(50).keys()];
        const sums = await Promise.all(numbers.map(number => said('add', { a: number, b: 1 })));
        assert.deepEqual(sums, numbers.map(number => String(number + 1)));
    },
    'an object is structured': async () => {
        const { structuredContent } = await call('forecast', { city: 'Oslo' });
        assert.deepEqual(structuredContent, { city: 'Oslo', days: ['sun', 'sun'] });
    },
    'an image is an image': async () => {
        const [block] = (await call('picture')).content;
        assert.deepEqual([block.type, block.mimeType, block.data], ['image', 'image/png', PIXEL]);
    },
    'a tool that fails says so': async () => {
        const result = await call('fails');
        assert.deepEqual([result.isError, result.content[0].text], [true, 'no luck today']);
    },
    'bad arguments are named': async () => {
        const result = await call('add', { a: 'one', b: 2 });
        assert.ok(result.isError && /["']a["']/.test(result.content[0].text), JSON.stringify(result));
    },
    'an unknown tool is refused': async () => void (await fails(call('no_such_tool'), -32602)),
    'the server knows who is asking': async () =>
        assert.equal(await said('who'), `theirs ${client.getNegotiatedProtocolVersion()}`),
    'progress is reported': async () => {
        const heard = [];
        await call('steps', { count: 3 }, { onprogress: step => heard.push(step) });
        await until(() => heard.length >= 3, 'third step');
        assert.deepEqual(heard.map(each => [each.progress, each.total, each.message]), [1, 2, 3].map(n => [n, 3, `step ${n}`]));
    },
    'the log is heard': async () => {
        await client.setLoggingLevel('warning');
        await call('chatter');
        await until(() => logs.length >= 2, 'second line');
        assert.deepEqual(logs.map(line => line.level), ['warning', 'error']);
    },
    'a call that is cancelled stops': async () => {
        const before = Number(await said('given_up'));
        const controller = new AbortController();
        const work = call('slow', {}, { signal: controller.signal, onprogress: () => controller.abort() });
        await work.then(() => assert.fail('it went on'), () => undefined);
        await until(async () => Number(await said('given_up')) === before + 1, 'call given up');
    },
    'a call that takes too long stops': async () => {
        const before = Number(await said('given_up'));
        await call('slow', {}, { timeout: 500 }).then(() => assert.fail('it went on'), () => undefined);
        await until(async () => Number(await said('given_up')) === before + 1, 'call given up');
    },
    'resources are read': async () => {
        const read = async uri => (await client.readResource({ uri })).contents[0];
        assert.equal((await read('note://hello')).text, HELLO);
        assert.equal((await read('note://pixel')).blob, PIXEL);
        assert.equal((await read('city://Oslo')).text, 'Oslo is a city.');
    },
    'a missing resource is an error': async () =>
        void (await fails(client.readResource({ uri: 'note://missing' }), isModern() ? -32602 : -32002)),
    'a prompt is filled in': async () => {
        const { messages } = await client.getPrompt({ name: 'review', arguments: { code: 'x = 1', style: 'long' } });
        assert.equal(messages[0].content.text, 'Review this in long form: x = 1');
        await fails(client.getPrompt({ name: 'no_such_prompt' }), -32602);
    },
    'arguments are completed': async () => {
        const argument = { name: 'style', value: 'l' };
        const { completion } = await client.complete({ ref: { type: 'ref/prompt', name: 'review' }, argument });
        assert.deepEqual(completion.values, ['long']);
    },
    'the model of the client is asked': async () =>
        assert.equal(await said('ask_model'), 'oracle said Which way? That way.'),
    'the roots of the client are asked': async () => assert.equal(await said('ask_roots'), 'file:///home/oslo'),
    'the user of the client is asked': async () => {
        assert.equal(await said('ask_user', { message: 'Which city?' }), 'accept Oslo');
        assert.equal(await said('ask_user', { message: 'May I know your age?' }), 'decline None');
    },
    'a form has a field of each kind': async () => assert.equal(await said('ask_form'), 'Sunday 2 9.5 False Oslo'),
    'the user is sent to a page': async () => {
        assert.equal(await said('ask_page'), 'accept');
        assert.equal(asked.at(-1).url, 'https://example.com/pay?for=Oslo');
    },
    'one question follows from another': async () =>
        assert.equal(await said('ask_often'), 'Oslo: What is Oslo? That way. accept, 1 sold'),
    'questions are asked together': async () =>
        assert.equal(await said('ask_together'), 'Oslo Which way? That way. file:///home/oslo'),
    'a prompt asks': async () => {
        const { messages } = await client.getPrompt({ name: 'guide' });
        assert.equal(messages[0].content.text, 'Guide me through Oslo.');
    },
    'who subscribed is told': async () => {
        const listening = isModern() && (await client.listen({ resourceSubscriptions: ['note://hello'] }));
        if (!listening) await client.subscribeResource({ uri: 'note://hello' });
        await said('touch');
        await until(() => notes.includes('note://hello'), 'update');
        if (listening) await listening.close();
        else await client.unsubscribeResource({ uri: 'note://hello' });
    },
    'lists that grow are told': async () => {
        const wanted = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
        const listening = isModern() && (await client.listen(wanted));
        await said('grow');
        for (const kind of ['tools', 'prompts', 'resources']) await until(() => notes.includes(kind), `word of the ${kind}`);
        if (listening) await listening.close();
        assert.equal(await said('grown', { a: 2, b: 2 }), '4');
    }
};

const print = value => process.stdout.write(`${JSON.stringify(value)}\n`);
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
print({ revision: client.getNegotiatedProtocolVersion(), checks: Object.keys(checks) });
for await (const name of createInterface({ input: process.stdin })) {
    try {
        await checks[name]();
        print({ check: name });
    } catch (error) {
        print({ check: name, error: String(error?.message ?? error) });
    }
}
if (!isModern()) await transport.terminateSession();
await client.close();
