import type { PagePromises } from './page-promises.ts';

const access = 'test/features/studio/access.test.ts';
const command = 'test/features/studio/command.slow.test.ts';
const downloads = 'test/features/studio/downloads.test.ts';
const events = 'test/features/studio/events.test.ts';
const node = 'test/features/studio/node.slow.test.ts';
const past = 'test/features/studio/past.test.ts';
const rows = 'test/features/studio/rows.test.ts';
const save = 'test/features/studio/save.test.ts';

export const studio: PagePromises = {
  'The database is opened as a replica, so credentials that only read are enough.': [
    `${command}: prints an address, shows the database as a replica, and ends with Ctrl-C`,
  ],
  'If somebody else has changed it meanwhile, nothing is written, and the page shows both.': [
    `${save}: writes nothing if somebody else has changed the row meanwhile, and shows what is stored`,
  ],
  'The primary key and blobs of a row cannot be changed in the page.': [
    `${save}: says what is wrong with a row`,
    `${save}: leaves blobs as they are`,
  ],
  'the handler tells it when the instance shows a newer state.': [
    `${events}: come at once, and whenever the instance shows a newer state, without a request`,
  ],
  'Rows before a change come from the log, as far back as 200 commits.': [
    `${past}: lists commits page by page, and shows what each has changed, with the rows before`,
  ],
  '`authorize` is called for every request, also for the files of the page, and anything but `true` refuses the request.':
    [
      `${access}: answers nothing unless the function says true`,
      `${access}: asks the function about every request, with its headers and its body`,
    ],
  'Without it, `studio()` throws `InvalidOptionError`.': [
    `${access}: does not start without a function that decides who may see it`,
  ],
  '`admin.fetch` answers a `Request` with a `Response`, and `admin.node` answers the requests of Node.js': [
    `${node}: the server of Node.js`,
    `${node}: a server that has cut off the path and read the body, as Express does`,
    `${node}: Fastify`,
  ],
  'without their indexes, so that it adds none that you drop': [
    `${save}: registers a table without its indexes, so that it adds none that others drop`,
  ],
  'Schemas that you have registered stay as they are.': [`${rows}: leaves the schemas of an application as they are`],
  'it ends events and calls, and releases the earlier states that the page has looked at.': [
    `${events}: end when the page leaves and when Studio is closed`,
    `${past}: shows a table as it was, with one snapshot for all calls about a moment`,
  ],
  'The command listens on 127.0.0.1 and on no other interface.': [
    `${command}: is on the loopback interface and on no other`,
  ],
  'The page exchanges it for a session, in a cookie that no script can read and that other sites cannot send.': [
    `${access}: gives a session for the token, which no script can read and no other site can send`,
    `${access}: refuses everybody without a session, and wrong tokens`,
  ],
  'The browser gets another token, which works once': [`${command}: opens the browser with a token that works once`],
  'Requests under another name than `127.0.0.1`, `localhost` and `[::1]` with this port are refused': [
    `${access}: answers under no other name: a name may have been bound to the loopback interface`,
    `${command}: refuses other hosts, other origins, and everybody without a session`,
  ],
  'Calls and downloads that come from a page of another site are refused, also where an application has mounted the handler.':
    [
      `${access}: refuses calls from pages of other sites`,
      `${downloads}: is refused to other sites, and where there is none`,
      `${downloads}: is refused to other sites, and for what it does not know`,
      `${events}: are refused to other sites`,
    ],
  'Without `write`, the handler refuses every call that changes rows or deletes objects': [
    `${save}: writes nothing unless it was opened for writing`,
  ],
  'Every answer has a strict `Content-Security-Policy`': [
    `${access}: says to browsers what they may do, in every answer`,
  ],
  'are shown, by the first bytes of a blob. Every other blob is a file to save, SVG and HTML too.': [
    `${downloads}: is shown if it is an image or text, by its bytes`,
    `${downloads}: is a file to save if a browser could run it`,
  ],
  'A request has at most 1 MiB.': [`${access}: refuses large requests before it has read them`],
  'Each answer with rows says how many requests it took, and their price.': [
    `${rows}: shows a page of rows of a cold replica with few requests, and says how many`,
  ],
  'Events cost no requests': [
    `${events}: come at once, and whenever the instance shows a newer state, without a request`,
  ],
};
