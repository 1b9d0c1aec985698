/** The example service on Ceph. */
import { randomUUID } from 'node:crypto';
import { describeService } from '../example/service-behaviour.ts';
import { bucketUnderTest } from './bucket.ts';

describeService('Ceph', async () => {
  const { bucket, endpoint, region, accessKeyId, secretAccessKey } = bucketUnderTest();
  return {
    variables: {
      STOREDB_BUCKET: bucket,
      STOREDB_ENDPOINT: endpoint,
      STOREDB_REGION: region,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      NOTES_PREFIX: `notes-${randomUUID()}`,
    },
    makesLinks: true,
    close: async () => undefined,
  };
});
