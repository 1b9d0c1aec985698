module.exports = {
  apps: [
    {
      name: 'notes',
      script: 'dist/main.js',
      exec_mode: 'cluster',
      instances: 4,
      // A process counts as started once it has sent `ready`, when its database is open.
      wait_ready: true,
      listen_timeout: 60_000,
      // Longer than a stop takes. After that PM2 kills the process.
      kill_timeout: 90_000,
      env: {
        NODE_ENV: 'production',
        PORT: 3000,
        // Long enough for every active client to send one more request, and learn that it must reconnect.
        DRAIN_MS: 2000,
        STOREDB_BUCKET: 'my-notes',
        STOREDB_REGION: 'eu-central-1',
      },
    },
  ],
};
