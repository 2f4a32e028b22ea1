import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.X509Certificate;
import java.util.HexFormat;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/** Prints what Java trusts with each store that it is given, as Kafka's clients ask it: path and fingerprints. */
public class TrustedBy {
    public static void main(String[] args) throws Exception {
        char[] password = args[0].toCharArray();
        for (int at = 1; at < args.length; at++) {
            KeyStore store = KeyStore.getInstance("PKCS12");
            try (FileInputStream in = new FileInputStream(args[at])) {
                store.load(in, password);
            }
            TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            factory.init(store);
            StringBuilder line = new StringBuilder(args[at]);
            for (X509Certificate each : ((X509TrustManager) factory.getTrustManagers()[0]).getAcceptedIssuers()) {
                byte[] digest = MessageDigest.getInstance("SHA-256").digest(each.getEncoded());
                line.append(' ').append(HexFormat.of().formatHex(digest));
            }
            System.out.println(line);
        }
    }
}
